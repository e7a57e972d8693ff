"""Replacing a file: all or nothing, and everything about it but its bytes stays."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from specclient.edit.replace import check_replaceable, replace_file
from specclient.errors import FileError

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.txt"
    path.write_bytes(OLD)
    return path


def alone(path: Path) -> bool:
    return [entry.name for entry in path.parent.iterdir() if not entry.is_symlink()] == [path.name]


def test_bytes_change_and_mode_stays(path: Path) -> None:
    path.chmod(0o750)
    replace_file(path, NEW, expected=OLD)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert alone(path)


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.parent / "link"
    link.symlink_to(path.name)
    replace_file(link, NEW, expected=OLD)
    assert link.is_symlink()
    assert path.read_bytes() == NEW


def test_extended_attributes_stay(path: Path) -> None:
    try:
        os.setxattr(path, "user.note", b"keep me")
    except (AttributeError, OSError):
        pytest.skip("no extended attributes here")
    replace_file(path, NEW, expected=OLD)
    assert os.getxattr(path, "user.note") == b"keep me"


def test_a_file_changed_meanwhile_is_left_alone(path: Path) -> None:
    path.write_bytes(b"someone else's\n")
    with pytest.raises(FileError, match="changed by someone else"):
        replace_file(path, NEW, expected=OLD)
    assert path.read_bytes() == b"someone else's\n"
    assert alone(path)


def test_a_file_that_vanished_is_not_made_anew(path: Path) -> None:
    path.unlink()
    with pytest.raises(FileError, match="cannot be written"):
        replace_file(path, NEW, expected=OLD)
    assert not path.exists()


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_failing_step_leaves_the_file_and_no_litter(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(FileError, match=f"is as it was: {os.strerror(code)}"):
        replace_file(path, NEW, expected=OLD)
    monkeypatch.undo()
    assert path.read_bytes() == OLD
    assert alone(path)


def test_read_only_files_and_folders_are_refused_before_any_work(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write anywhere, so the answer of the system is played.
    monkeypatch.setattr(os, "access", lambda target, _mode: Path(target) != path.parent)
    with pytest.raises(FileError, match="is read-only, and a file is replaced"):
        check_replaceable(path)
    monkeypatch.setattr(os, "access", lambda target, _mode: Path(target) != path)
    with pytest.raises(FileError, match=r"file\.txt is read-only: make it writable first"):
        check_replaceable(path)


def test_hard_links_are_not_cut_apart(path: Path) -> None:
    os.link(path, path.parent / "twin")
    with pytest.raises(FileError, match="2 hard links"):
        replace_file(path, NEW, expected=OLD)
    assert path.read_bytes() == OLD


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(path: Path) -> None:
    os.chown(path, 12345, 12345)
    path.chmod(0o4755)
    replace_file(path, NEW, expected=OLD)
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 12345, 0o4755)
