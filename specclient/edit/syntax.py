"""Whether an edit broke the grammar of a file that strict readers read."""

from __future__ import annotations

import json
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

_FILTERS = threading.Lock()
"""Held while warnings are off: their filters are the whole process's."""


def broken(name: str, old: str, new: str) -> str | None:
    """One sentence where the file called `name` could be read before the edit and cannot after it."""
    kind, read = _GRAMMARS.get(PurePath(name).suffix.lower(), ("", str))
    if (fault := _fault(read, new)) is None or _fault(read, old) is not None:
        return None
    return f"The file is {kind}, and the answer is none: {fault}."


def _fault(read: Callable[[str], Any], text: str) -> str | None:
    try:
        read(text)
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error).rstrip(".") or type(error).__name__
    return None


def _read_python(text: str) -> None:
    """Compiled and not run; a "return" that stands in no function any more shows only then."""
    try:
        with _FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<edit>", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ValueError(error.msg if error.lineno is None else f"{error.msg}: line {error.lineno}") from None


def _read_yaml(text: str) -> None:
    """Without its values, whose tags may be an application's own. Any text passes where PyYAML is missing."""
    try:
        import yaml
    except ModuleNotFoundError:
        return
    try:
        for _ in yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            pass
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f": line {error.problem_mark.line + 1}"
        raise ValueError(f"{error.problem}{line}") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error).partition("\n")[0]) from None


_GRAMMARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    **dict.fromkeys((".json", ".ipynb", ".geojson", ".webmanifest"), ("JSON", json.loads)),
    **dict.fromkeys((".py", ".pyi", ".pyw"), ("Python {}.{}".format(*sys.version_info[:2]), _read_python)),
    **dict.fromkeys((".yaml", ".yml"), ("YAML", _read_yaml)),
    ".toml": ("TOML", tomllib.loads),
}
