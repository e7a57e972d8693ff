"""Where the command line writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")
T = TypeVar("T")

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
_PIPE_WIDTH = 120
_FULL_OR_BROKEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def stdout() -> Console:
    """A rich console on stdout; where that is no terminal, plain text of a width that tables fit into."""
    return _console(sys.stdout)


def stderr() -> Console:
    """A rich console on stderr."""
    return _console(sys.stderr)


def _console(stream: Any) -> Console:
    from rich.console import Console

    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Rows on stdout in columns that are never cut or broken, so that each value can be copied whole."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def note(text: str) -> None:
    """A sentence for people, on stderr."""
    print(text, file=sys.stderr, flush=True)


def read_stdin() -> str:
    """All of stdin. Raises ConfigError where it is no UTF-8 text."""
    from specclient.errors import ConfigError

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"stdin is not UTF-8 text (byte {error.start}): convert it first.") from None


def write_json(value: Any) -> None:
    """A JSON document on stdout, indented."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a terminal that is not UTF-8, or a name that is no text
        text = json.dumps(value, indent=2, default=_plain)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)


def guarded(command: Callable[P, T]) -> Callable[P, T]:
    """Turn what a command raises into one sentence on stderr and the right exit code.

    With `--json` the error is also a JSON object on stdout, so that a script always gets one.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            note("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            # The reader of stdout left. Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(EXIT_FAILED) from None
        except OSError as error:
            if error.errno != errno.ENOSPC or error.filename is not None:
                raise
            # As above: what Python still holds back for stdout does not fit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            note("error: stdout could not be written, because its disk is full: free some space.")
            raise typer.Exit(EXIT_FAILED) from None
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            if kwargs.get("as_json"):
                write_json(_error_as_dict(error))
            note(f"error: {error}")
            raise typer.Exit(code) from None

    return run


def _error_as_dict(error: Exception) -> dict[str, Any]:
    """The error, with what the model wrote where the file was left alone: a script may want to keep it."""
    from specclient.errors import EditRefused, IncompleteOutput, WriteFailed

    described: dict[str, Any] = {"error": {"type": type(error).__name__, "message": str(error)}}
    if isinstance(error, IncompleteOutput):
        described["partial"] = error.partial
    if isinstance(error, EditRefused | WriteFailed):
        described["edit"] = error.edit.as_dict()
    return described


def exit_code(error: Exception) -> int | None:
    """2 for wrong arguments, files and configuration, 1 for what failed on the way, None for a bug."""
    from specclient.errors import (
        ConfigError,
        EditRefused,
        FileError,
        IncompleteOutput,
        SpecclientError,
        WriteFailed,
    )
    from specclient_engine.errors import EngineError, ModelNotFound, ModelUnreachable
    from specclient_providers.errors import OverrideError, UnknownProvider

    # The client tells an engine that cannot be loaded as a ConfigError; only a wrong name is the caller's.
    cause = error.__cause__ if isinstance(error, ConfigError | FileError) else None
    if isinstance(cause, EngineError) and not isinstance(cause, ModelNotFound):
        return EXIT_FAILED
    if isinstance(error, ModelUnreachable) or isinstance(cause, ModelUnreachable):
        return EXIT_FAILED
    if isinstance(cause, OSError) and cause.errno in _FULL_OR_BROKEN:
        return EXIT_FAILED
    if isinstance(error, IncompleteOutput | EditRefused | WriteFailed):
        return EXIT_FAILED
    if isinstance(error, ConfigError | FileError | UnknownProvider | OverrideError | ModelNotFound):
        return EXIT_USAGE
    return EXIT_FAILED if isinstance(error, SpecclientError | EngineError) else None
