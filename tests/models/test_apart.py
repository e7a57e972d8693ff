"""A conversion in a process of its own makes, tells and raises what it does in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specclient_engine.api import Progress
from specclient_engine.errors import EngineError, ModelCorrupt
from specclient_engine.models import apart
from specclient_engine.models.apart import convert_apart
from specclient_engine.models.gguf_folder import convert_gguf
from tests.models.gguf_writing import write_gguf
from tests.models.test_gguf_kinds import VOCABULARY, tiny

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "m.gguf", "qwen2", tiny("qwen2"), VOCABULARY)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_and_the_progress_are_the_same(file: Path, tmp_path: Path) -> None:
    here: list[Progress] = []
    there: list[Progress] = []
    convert_gguf(file, tmp_path / "here", here.append)
    convert_apart(file, tmp_path / "there", there.append)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert there == here
    assert there


def test_nothing_that_it_imports_stays(file: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from specclient_engine.models import locate
locate(Path({str(file)!r}))
print(sorted({{"transformers", "gguf", "torch"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_its_errors_are_raised_here(tmp_path: Path, file: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF\x03\x00\x00\x00cut off")
    with pytest.raises(ModelCorrupt, match="not a readable GGUF") as there:
        convert_apart(broken, tmp_path / "out")
    with pytest.raises(ModelCorrupt) as here:
        convert_gguf(broken, tmp_path / "out")
    assert str(there.value) == str(here.value)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(FileExistsError):
        convert_apart(file, tmp_path / "taken")


def test_an_end_from_outside_is_said(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "killed").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "killed").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "killed"))
    with pytest.raises(EngineError, match=r"m\.gguf was ended from outside \(exit 3\).*load the model again"):
        convert_apart(file, tmp_path / "out")


def test_whoever_stops_watching_stops_it(file: Path, tmp_path: Path) -> None:
    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_apart(file, tmp_path / "out", stop)
    assert not (tmp_path / "out" / "tokenizer.json").exists()


def test_a_frozen_program_converts_in_place(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(apart.subprocess, "Popen", None)
    convert_apart(file, tmp_path / "out")
    assert (tmp_path / "out" / "tokenizer.json").exists()
