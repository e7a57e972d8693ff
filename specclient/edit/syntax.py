"""Whether an edit broke the grammar of a file that strict readers read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

_GRAMMARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    **dict.fromkeys((".json", ".ipynb", ".geojson", ".webmanifest"), ("JSON", json.loads)),
    ".toml": ("TOML", tomllib.loads),
}


def broken(name: str, old: str, new: str) -> str | None:
    """One sentence where the file called `name` could be read before the edit and cannot after it."""
    kind, read = _GRAMMARS.get(PurePath(name).suffix.lower(), ("", str))
    if _fault(read, old) is not None or (fault := _fault(read, new)) is None:
        return None
    return f"The file is {kind}, and the answer is none: {fault}."


def _fault(read: Callable[[str], Any], text: str) -> str | None:
    try:
        read(text)
    except (ValueError, RecursionError) as error:
        return str(error).rstrip(".") or type(error).__name__
    return None
