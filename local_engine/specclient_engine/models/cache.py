"""Where fetched and converted models live, and how two processes keep out of each other's way."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import NotEnoughDisk

_BLOCK = 1 << 22


def cache_root() -> Path:
    """`$SPECCLIENT_CACHE`, else `$XDG_CACHE_HOME/specclient`, else `~/.cache/specclient`."""
    if explicit := os.environ.get("SPECCLIENT_CACHE"):
        return Path(explicit).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "specclient"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold `path`'s lock: a second process waits, then finds the work done."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(path.name + ".lock")):
        yield


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse before the first byte is written rather than in the middle."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NotEnoughDisk(
            f"{what} needs {needed / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            "free some space, or set SPECCLIENT_CACHE to a folder on a larger disk."
        )


def sha256_of(path: Path, progress: ProgressCallback | None = None) -> str:
    """The file's SHA-256 in hex, read in blocks."""
    digest = hashlib.sha256()
    total = path.stat().st_size
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(Progress("verify", path.name, done, total))
    return digest.hexdigest()
