"""A file replaced in one step: whoever looks sees the old bytes or the new ones, never a part."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from specclient.errors import FileError
from specclient.textfile import name_in_text


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise FileError now for what would make `replace_file` fail later, before a model has been asked."""
    target = Path(os.path.realpath(path))
    status = _status(target)
    if not os.access(target, os.W_OK):
        raise FileError(f"{name_in_text(target)} is read-only: make it writable first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise FileError(
            f"{name_in_text(target.parent)} is read-only, and a file is replaced through a second one "
            f"beside it."
        )
    if status.st_nlink > 1:
        raise FileError(
            f"{name_in_text(target)} has {status.st_nlink} hard links, which replacing would cut apart: "
            f"edit a copy, or write the result (stdout) yourself."
        )


def replace_file(path: str | os.PathLike[str], data: bytes, *, expected: bytes) -> None:
    """Put `data` in place of `expected`, durably, keeping mode, owner and extended attributes.

    A symbolic link keeps pointing where it does; the file it points to is replaced. Raises FileError, with
    the file as it was, if the file no longer holds `expected` or if any step fails.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    temporary: str | None = None
    try:
        status = _status(target)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".specclient", dir=target.parent
        )
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            _copy_attributes(target, status, file.fileno())
            file.flush()
            os.fsync(file.fileno())
        if target.read_bytes() != expected:
            raise FileError(
                f"{name_in_text(target)} was changed by someone else meanwhile, so it was left alone: "
                f"edit it again."
            )
        os.replace(temporary, target)
        temporary = None
        _sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(f"{name_in_text(target)} could not be written and is as it was: {reason}.") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _status(target: Path) -> os.stat_result:
    try:
        status = target.stat()
    except OSError as error:
        raise FileError(f"{name_in_text(target)} cannot be written: {error.strerror}.") from error
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{name_in_text(target)} is not a regular file.")
    return status


def _copy_attributes(source: Path, status: os.stat_result, handle: int) -> None:
    """Owner before mode: changing the owner clears the set-user-id bits."""
    if hasattr(os, "fchown"):
        made = os.fstat(handle)
        if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
            os.fchown(handle, status.st_uid, status.st_gid)
        os.fchmod(handle, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        # Access control lists live here. A name that only root may set is the kernel's own business.
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(handle, name, os.getxattr(source, name))


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable. Where a folder cannot be opened, the file is whole anyway."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
