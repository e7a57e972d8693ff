"""A conversion in a process of its own makes, tells and raises what it does in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

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


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("kill -KILL $$", r"m\.gguf was ended from outside \(SIGKILL\).*load the model again"),
        ("exit 3", r"m\.gguf failed \(exit 3: it said nothing\)"),
        ("echo first >&2; echo the last >&2; exit 1", r"m\.gguf failed \(exit 1: the last\)"),
    ],
)
def test_an_end_without_a_word_is_told(
    does: str, said: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\n{does}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(EngineError, match=said):
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


def test_no_module_of_the_folder_it_is_called_in_runs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "repository"
    for name in ("types.py", "json.py", "torch.py", "gguf/__init__.py", "specclient_engine/__init__.py"):
        (foreign / name).parent.mkdir(parents=True, exist_ok=True)
        (foreign / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(1)\n")
    monkeypatch.chdir(foreign)
    convert_apart(file, tmp_path / "out")
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "out" / "tokenizer.json").exists()


def test_it_has_the_modules_of_this_process(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gguf.py").write_text("raise ImportError('our own gguf')")
    monkeypatch.syspath_prepend(tmp_path / "own")
    with pytest.raises(ImportError, match="our own gguf"):
        convert_apart(file, tmp_path / "out")


def test_what_it_failed_over_is_said(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gguf.py").write_text("raise ArithmeticError('what broke')")
    monkeypatch.syspath_prepend(tmp_path / "own")
    with pytest.raises(EngineError, match=r"m\.gguf failed \(exit 1: ArithmeticError: what broke\)"):
        convert_apart(file, tmp_path / "out")


def test_it_starts_where_the_working_directory_is_gone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    convert_apart(file, tmp_path / "out")
    assert (tmp_path / "out" / "tokenizer.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="processes are told by their number")
def test_it_ends_with_the_process_that_started_it(file: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gguf.py").write_text("print('here', flush=True)\nimport time\ntime.sleep(600)\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "own")!r})
from pathlib import Path
from specclient_engine.models import apart
started = apart.subprocess.Popen
def Popen(*args, **options):
    child = started(*args, **options | {{"stderr": None}})
    print(child.pid, file=sys.stderr, flush=True)
    return child
apart.subprocess.Popen = Popen
apart.convert_apart(Path({str(file)!r}), Path({str(tmp_path / "out")!r}))
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stderr is not None
        assert parent.stderr.readline().strip().isdigit()
        assert parent.stderr.readline() == "here\n"
        parent.kill()
        # The child holds the other end: this is over when it is.
        assert parent.stderr.read() == ""


def test_a_disk_that_safetensors_fills_is_no_broken_model(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match="No space left on device"):
        convert_gguf(file, tmp_path / "out")


@pytest.mark.parametrize(
    ("given", "passed_on"), [([], ["-P"]), (["-E"], ["-P", "-E"]), (["-I"], ["-P", "-E", "-s"])]
)
def test_what_this_process_was_told_of_its_environment_holds_there_too(
    given: list[str], passed_on: list[str]
) -> None:
    code = "from specclient_engine.models.interpreter import python_command; print(*python_command()[1:])"
    done = subprocess.run([sys.executable, *given, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == passed_on
