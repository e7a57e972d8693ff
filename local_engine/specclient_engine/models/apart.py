"""Conversion in a process of its own.

It takes transformers, and all that this imports: 100 MB, which would stay for as long as the model is served.
"""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from specclient_engine import errors
from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import EngineError
from specclient_engine.models.gguf_folder import convert_gguf


def convert_apart(file: Path, folder: Path, progress: ProgressCallback | None = None) -> None:
    """`convert_gguf`, with its progress and its errors, in a process that is over when it is.

    In this one where there is no interpreter to start, as in a frozen program. Raises EngineError where the
    process was ended from outside.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        convert_gguf(file, folder, progress)
        return
    found = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-m", __name__, str(file), str(folder)],
        env={**os.environ, "PYTHONPATH": found},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as child:
        assert child.stdout is not None
        try:
            failure = _follow(child.stdout, progress)
        except BaseException:
            child.kill()
            child.wait()
            raise
    if failure is not None:
        raise failure
    if child.returncode:
        raise EngineError(
            f"the conversion of {file.name} was ended from outside (exit {child.returncode}), perhaps for "
            "want of memory: close other programs and load the model again"
        )


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


def _main(file: str, folder: str, told: TextIO) -> None:
    """Converts, and tells a line of JSON for each thing to tell."""

    def tell(what: object) -> None:
        print(json.dumps(what), file=told, flush=True)

    try:
        convert_gguf(Path(file), Path(folder), lambda progress: tell(asdict(progress)))
    except (EngineError, ImportError, MemoryError) as error:
        tell({"error": [type(error).__name__, str(error), None]})
    except OSError as error:
        # What the conversion lets through is the disk's, which has a number.
        tell({"error": ["OSError", error.strerror, error.errno]})


if __name__ == "__main__":
    lines, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no line of this
    _main(sys.argv[1], sys.argv[2], lines)
