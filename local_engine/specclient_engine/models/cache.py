"""Where fetched and converted models live, and how two processes keep out of each other's way."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import CacheUnusable, NotEnoughDisk

_log = logging.getLogger(__name__)

_BLOCK = 1 << 22
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SHA256 = re.compile("[0-9a-f]{64}")


def cache_root() -> Path:
    """`$SPECCLIENT_CACHE`, else `$XDG_CACHE_HOME/specclient`, else `~/.cache/specclient`.

    Raises CacheUnusable where that is below a home directory that there is not.
    """
    explicit, base = os.environ.get("SPECCLIENT_CACHE"), os.environ.get("XDG_CACHE_HOME")
    try:
        if explicit:
            return Path(explicit).expanduser()
        return (Path(base).expanduser() if base else Path.home() / ".cache") / "specclient"
    except RuntimeError:
        said = explicit or base or "~/.cache"
        raise CacheUnusable(
            f"the cache of models has no place, because {said} is below a home directory that is not known "
            "here: set SPECCLIENT_CACHE to a folder that can be written to"
        ) from None


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold `path`'s lock: a second process waits, then finds the work done.

    Raises CacheUnusable where there can be no lock, and BlockingIOError where another has it and `wait` is
    False.
    """
    from filelock import FileLock, Timeout

    make_folder(path.parent)
    lock = FileLock(path.with_name(path.name + ".lock"))
    with _told_as_unusable(path.parent):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise BlockingIOError(errno.EWOULDBLOCK, "another process works on it", str(path)) from None
            _log.warning("%s is being made by another process: waiting for it.", path.name)
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def make_folder(folder: Path) -> None:
    """Makes a folder of the cache. Raises CacheUnusable where that cannot be."""
    with _told_as_unusable(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _told_as_unusable(folder: Path) -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise _full(folder) from error
        reason = (error.strerror or type(error).__name__).lower()
        raise CacheUnusable(
            f"the cache's folder {folder} cannot be written to ({reason}): set SPECCLIENT_CACHE to one that "
            "can"
        ) from error


@contextmanager
def told_when_full(folder: Path) -> Iterator[None]:
    """A disk that became full on the way, as NotEnoughDisk that names `folder`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _full(folder) from error


def is_full(error: BaseException) -> bool:
    """Whether a full disk is behind an error."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.errno in _FULL:
            return True
        inner = inner.__cause__ or inner.__context__
    return False


def _full(folder: Path) -> NotEnoughDisk:
    return NotEnoughDisk(
        f"the disk of {folder} became full on the way: free some space, or set SPECCLIENT_CACHE to a folder "
        "on a larger disk"
    )


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse before the first byte is written rather than in the middle."""
    make_folder(folder)
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


def kept_sha256(file: Path) -> str:
    """The file's SHA-256, remembered by path, size and time: to read gigabytes at every start is slow."""
    stat = file.stat()
    key = hashlib.sha256(f"{file.resolve()}|{stat.st_size}|{stat.st_mtime_ns}".encode()).hexdigest()
    note = cache_root() / "hashes" / key[:32]
    with suppress(OSError, UnicodeDecodeError):
        # Less than a whole hash would name another model.
        if _SHA256.fullmatch(kept := note.read_text(encoding="ascii")):
            return kept
    digest = sha256_of(file)
    with suppress(OSError):  # where nothing can be kept, it is read again
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, digest.encode())
    return digest


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that whoever reads it finds as it was or as it is to be, and never in part."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        made.write_bytes(content)
        os.replace(made, path)


def bytes_below(path: Path) -> int:
    """The bytes of a file, or of all files below a folder, while somebody may be writing or moving them."""
    total = 0
    for file in [path, *path.rglob("*")]:
        try:
            if file.is_file() and not file.is_symlink():
                total += file.stat().st_size
        except OSError:
            continue  # it was moved between being listed and being looked at
    return total


def discard(path: Path) -> None:
    """Takes away a file or folder, as far as it can be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
