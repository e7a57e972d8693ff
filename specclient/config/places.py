"""Places in the file system, as a configuration names them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(place: str | os.PathLike[str]) -> Path:
    """A path without its `~`. Raises ValueError, in a clause, for what cannot be one."""
    if "\0" in os.fspath(place):
        raise ValueError("the path holds a NUL character")
    try:
        return Path(place).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home directory for {os.fspath(place)!r}") from None


def is_there(place: str) -> bool:
    """Whether a file or folder is there, for us to see."""
    try:
        return expanded(place).exists()
    except (OSError, ValueError):
        return False
