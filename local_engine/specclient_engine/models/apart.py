"""Conversion in a process of its own.

It takes transformers, and all that this imports: 100 MB, which would stay for as long as the model is served.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, TextIO

from specclient_engine import errors
from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import EngineError
from specclient_engine.models.gguf_folder import convert_gguf
from specclient_engine.models.interpreter import python_command, working_directory

_CHILD = f"""
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from {__name__} import main
main(*sys.argv[2:])
"""
_TAIL = 4096


def convert_apart(file: Path, folder: Path, progress: ProgressCallback | None = None) -> None:
    """`convert_gguf`, with its progress and its errors, in a process that is over when it is.

    In this one where there is no interpreter to start, as in a frozen program. Raises EngineError where the
    process failed by itself or was ended from outside.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        convert_gguf(file, folder, progress)
        return
    found = [path for path in sys.path if path]
    with (
        tempfile.TemporaryFile(dir=folder.parent) as said,
        subprocess.Popen(
            [*python_command(), "-c", _CHILD, json.dumps(found), str(file), str(folder)],
            cwd=working_directory(folder.parent),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as child,
    ):
        assert child.stdout is not None
        try:
            failure = _follow(child.stdout, progress)
            child.wait()
        except BaseException:
            child.kill()
            child.wait()
            raise
        if failure is not None:
            raise failure
        if child.returncode:
            raise _ended(file, child.returncode, _last_line(said))


def _follow(lines: Iterable[str], progress: ProgressCallback | None) -> Exception | None:
    """Passes on what the process tells, up to its end; the error that it ended with."""
    failure = None
    for line in lines:
        said = json.loads(line)
        if "error" in said:
            failure = _as_error(*said["error"])
        elif progress is not None:
            progress(Progress(**said))
    return failure


def _as_error(kind: str, message: str, number: int | None) -> Exception:
    if number is not None:
        return OSError(number, message)
    made: type[Exception] = getattr(errors, kind, getattr(builtins, kind, EngineError))
    return made(message)


def _ended(file: Path, status: int, last_line: str) -> EngineError:
    """Of a process that told no error."""
    if status < 0:
        with suppress(ValueError):
            name = signal.Signals(-status).name
            return EngineError(
                f"the conversion of {file.name} was ended from outside ({name}), perhaps for want of memory: "
                "close other programs and load the model again"
            )
    return EngineError(
        f"the conversion of {file.name} failed (exit {status}: {last_line or 'it said nothing'}): mend that, "
        "or give the model as a folder of safetensors"
    )


def _last_line(said: BinaryIO) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL))
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def main(file: str, folder: str) -> None:
    """Converts, and tells a line of JSON on stdout for each thing to tell; over when stdin is.

    What libraries print is no line of this: it goes to stderr.
    """
    threading.Thread(target=_end_with_the_parent, name="specclient-parent", daemon=True).start()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(2, 1)
        _convert(Path(file), Path(folder), told)


def _end_with_the_parent() -> None:
    # Past Python's own buffer, whose lock would stop the interpreter from ending.
    os.read(0, 1)
    os._exit(1)


def _convert(file: Path, folder: Path, told: TextIO) -> None:
    def tell(what: object) -> None:
        print(json.dumps(what), file=told, flush=True)

    try:
        convert_gguf(file, folder, lambda progress: tell(asdict(progress)))
    except (EngineError, ImportError, MemoryError) as error:
        tell({"error": [type(error).__name__, str(error), None]})
    except OSError as error:
        # What the conversion lets through is the disk's, which has a number.
        tell({"error": ["OSError", error.strerror, error.errno]})
