"""Pages of the libraries that only loading touched are let go, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specclient_engine.runner.memory import _library_pages

ROOT = Path(__file__).resolve().parents[2]
SMAPS = """\
7f0000000000-7f0000001000 r--p 00000000 fd:01 42 /usr/lib/libone.so
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
7f0000001000-7f0000005000 r-xp 00001000 fd:01 42 /usr/lib/libone.so.1.2 (deleted)
Rss:                  16 kB
Anonymous:             0 kB
7f0000005000-7f0000006000 r--p 00005000 fd:01 42 /usr/lib/librelocated.so
Anonymous:             4 kB
7f0000006000-7f0000007000 rw-p 00006000 fd:01 42 /usr/lib/libone.so
Anonymous:             0 kB
7f0000007000-7f0000008000 r--s 00000000 fd:01 43 /data/model.safetensors
Anonymous:             0 kB
7f0000008000-7f0000009000 r--p 00000000 fd:01 44 /data/records.bin
Anonymous:             0 kB
7f0000009000-7f000000a000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
"""


def test_only_what_is_the_librarys_own_file_to_the_byte_is_let_go() -> None:
    assert list(_library_pages(SMAPS)) == [
        (0x7F0000000000, 0x7F0000001000),
        (0x7F0000001000, 0x7F0000005000),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="mappings are read from Linux")
def test_torch_is_let_go_of_and_computes_the_same_when_it_is_mapped_again() -> None:
    code = """
import torch
from specclient_engine.runner.memory import return_library_pages

def held():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))

def answer():
    x = torch.arange(4096.0).view(64, 64).sin()
    return torch.nn.functional.silu(x @ x).softmax(-1).argsort().tolist()

before, first = held(), answer()
return_library_pages()
# Read before torch is used again: how much one fault brings back is the system's choice.
print(before, held())
assert answer() == first
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 2
