"""Where the command line writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
from codecs import lookup
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")
T = TypeVar("T")

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
_PIPE_WIDTH = 120
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_OR_BROKEN = (*_FULL, errno.EIO)
_UNWRITABLE = (*_FULL_OR_BROKEN, errno.EPIPE)


def stdout() -> Console:
    """A rich console on stdout; where that is no terminal, plain text of a width that tables fit into."""
    return _console(sys.stdout)


def stderr() -> Console:
    """A rich console on stderr."""
    return _console(sys.stderr)


def draws() -> bool:
    """Whether what is drawn on stderr can be taken away again: not in a file, nor where TERM is dumb."""
    return sys.stderr.isatty() and not stderr().is_dumb_terminal


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
    """A sentence for people, on stderr. Where that cannot be written, nobody can be told."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def read_stdin() -> str:
    """All of stdin. Raises ConfigError where it is no UTF-8 text."""
    from specclient.errors import ConfigError

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"stdin is not UTF-8 text (byte {error.start}): convert it first.") from None
    except OSError as error:
        raise ConfigError(f"stdin cannot be read: {error.strerror}.") from None


def as_typed(option: str, text: str | None) -> str | None:
    """An argument as it was typed under any locale. Raises ConfigError for what is no UTF-8."""
    from specclient.errors import ConfigError

    if text is None:
        return None
    try:
        return text.encode("utf-8", "surrogateescape").decode()  # Python hands it over so (PEP 383)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{option} holds a byte that is no UTF-8 text (0x{error.object[error.start]:02X} at "
            f"{error.start}): convert it first."
        ) from None
    except UnicodeEncodeError:  # half of a pair that stands for no byte: on Windows
        raise ConfigError(f"{option} is no text: convert it first.") from None


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
        except Exception as error:
            if stdout_failed(error):
                raise typer.Exit(given_up(error)) from None
            told = _of_ours(error)
            code = exit_code(told)
            if code is None:
                raise
            if kwargs.get("as_json"):
                write_json(_error_as_dict(told))
            note(f"error: {told}")
            raise typer.Exit(code) from None

    return run


def stdout_failed(error: BaseException) -> bool:
    """Whether a write to stdout failed: an error of any file has its name."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None


def given_up(error: BaseException) -> int:
    """Say why nothing more goes to stdout, unless its reader just left; the exit code."""
    # What Python still holds back does not get there either, and would be complained of at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    number = error.errno if isinstance(error, OSError) else None
    if number in _FULL:
        note("error: stdout could not be written, because its disk is full: free some space.")
    elif number != errno.EPIPE:
        note(f"error: stdout could not be written: {getattr(error, 'strerror', error)}.")
    return EXIT_FAILED


def _of_ours(error: Exception) -> Exception:
    """What the system or Python's import said, as an error of ours; any other error as it is."""
    from specclient.core.engines import LIBRARIES, lacking, unusable
    from specclient.errors import ConfigError

    if isinstance(error, ImportError):
        library = (error.name or "").partition(".")[0]
        if library in LIBRARIES:
            return ConfigError(lacking(error))
        if library.startswith("specclient"):
            return error
        return ConfigError(f"A library cannot be imported ({error}): pip install 'specclient[all]'.")
    if isinstance(error, UnicodeEncodeError) and lookup(error.encoding) == lookup(sys.stdout.encoding):
        return ConfigError(
            f"stdout is {sys.stdout.encoding}, which has no {error.object[error.start]!a}: set "
            f"PYTHONIOENCODING=utf-8."
        )
    if isinstance(error, OSError | RuntimeError) and (said := unusable(error)) is not None:
        told = ConfigError(said)
        told.__cause__ = error
        return told
    return error


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
    from specclient_engine.errors import CacheUnusable, EngineError, ModelNotFound, ModelUnreachable
    from specclient_providers.errors import OverrideError, UnknownProvider

    # The client tells an engine that cannot be loaded as a ConfigError; only a wrong name, or a cache that is
    # configured wrongly, is the caller's.
    cause = error.__cause__ if isinstance(error, ConfigError | FileError) else None
    if isinstance(cause, EngineError) and not isinstance(cause, ModelNotFound | CacheUnusable):
        return EXIT_FAILED
    if isinstance(error, ModelUnreachable) or isinstance(cause, ModelUnreachable):
        return EXIT_FAILED
    if isinstance(cause, OSError) and cause.errno in _FULL_OR_BROKEN:
        return EXIT_FAILED
    if isinstance(error, IncompleteOutput | EditRefused | WriteFailed):
        return EXIT_FAILED
    usage = ConfigError | FileError | UnknownProvider | OverrideError | ModelNotFound | CacheUnusable
    if isinstance(error, usage):
        return EXIT_USAGE
    return EXIT_FAILED if isinstance(error, SpecclientError | EngineError) else None
