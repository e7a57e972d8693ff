"""The compiled kernels are found, mended or built wherever they can be, and said to be missing where not."""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specclient_engine.models import cache_root
from specclient_engine.models.cache import locked
from specclient_engine.runner import native_build
from specclient_engine.runner.native_build import native_library

Found = ctypes.CDLL | str


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library that can be loaded, as a compiler writes it."""
    folder = tmp_path_factory.mktemp("built")
    compilers = native_build._compilers()
    if not compilers:
        pytest.skip("no compiler")
    (folder / "a.c").write_text("int multiply(void) { return 7; }\n")
    done = os.spawnlp(
        os.P_WAIT, compilers[0], compilers[0], "-shared", "-o", str(folder / "a.so"), str(folder / "a.c")
    )
    assert done == 0
    return (folder / "a.so").read_bytes()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which a compiler is looked for; and a cache of this test's own."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("SPECCLIENT_CACHE", str(tmp_path / "own cache"))
    monkeypatch.setattr(native_build, "instructions", lambda: frozenset(native_build.NEEDED))
    return folder


@pytest.fixture
def compiler(path: Path, built: bytes) -> Path:
    """A compiler that needs no time, and counts its calls."""
    (path / "built").write_bytes(built)
    return script(
        path / "cc",
        f'echo "$@" >> {path}/calls\nwhile [ "$1" != -o ]; do shift; done\n/bin/cp "{path}/built" "$2"',
    )


def script(file: Path, does: str) -> Path:
    file.write_text(f"#!/bin/sh\n{does}\n")
    file.chmod(0o755)
    return file


def calls(compiler: Path) -> int:
    told = compiler.with_name("calls")
    return len(told.read_text().splitlines()) if told.exists() else 0


@pytest.fixture
def load() -> Iterator[Callable[[], Found]]:
    """`native_library`, as another process would find it."""

    def load() -> Found:
        native_library.cache_clear()
        return native_library()

    yield load
    native_library.cache_clear()


def the_file() -> Path:
    (file,) = (cache_root() / "native").glob("*.so")
    return file


def test_a_library_in_the_cache_is_all_that_is_needed(
    compiler: Path, load: Callable[[], Found], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(load(), ctypes.CDLL)
    assert calls(compiler) == 1
    compiler.unlink()
    the_file().with_name(the_file().name + ".lock").unlink()
    the_file().with_name(the_file().name + ".lock").mkdir()  # as in a cache that is only to be read
    found = load()
    assert isinstance(found, ctypes.CDLL)
    assert found.multiply() == 7
    script(compiler, "exit 1")
    assert isinstance(load(), ctypes.CDLL)


@pytest.mark.parametrize("size", [0, 100, 4096, -1])
def test_a_damaged_library_is_built_again(size: int, compiler: Path, load: Callable[[], Found]) -> None:
    load()
    whole = the_file().read_bytes()
    # Another file in its place: this process has the first one mapped, and would die by its damage.
    damaged = the_file().with_suffix(".damaged")
    damaged.write_bytes(whole[:size] if size >= 0 else whole[:200] + b"~" + whole[201:])
    damaged.replace(the_file())
    found = load()
    assert isinstance(found, ctypes.CDLL)
    assert calls(compiler) == 2
    assert the_file().read_bytes() == whole


@pytest.mark.parametrize("cache", ["~nosuchuser/x", "file/cache", "locked"])
def test_where_nothing_can_be_kept_each_process_builds_its_own(
    cache: str,
    compiler: Path,
    load: Callable[[], Found],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("no folder")
    if cache == "locked":
        monkeypatch.setattr(native_build, "locked", lambda _: locked(tmp_path / "file" / "x"))
    else:
        monkeypatch.setenv("SPECCLIENT_CACHE", cache if cache[0] == "~" else str(tmp_path / cache))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    found = load()
    assert isinstance(found, ctypes.CDLL)
    assert found.multiply() == 7
    assert list(temporary.iterdir()) == []
    (told,) = caplog.messages
    assert "are not kept" in told
    assert "set SPECCLIENT_CACHE" in told


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (None, "there is no C compiler"),
        (
            "echo 'pass.c:1: fatal error: immintrin.h: No such file' >&2; exit 1",
            "fatal error: immintrin.h: No",
        ),
        ("exit 4", "exit 4"),
        ('while [ "$1" != -o ]; do shift; done; echo none > "$2"', "could not build the kernels"),
    ],
)
def test_that_there_are_none_is_said_once_with_the_reason_and_what_to_do(
    does: str | None,
    said: str,
    path: Path,
    load: Callable[[], Found],
    caplog: pytest.LogCaptureFixture,
) -> None:
    if does is not None:
        script(path / "cc", does)
    found = load()
    assert isinstance(found, str)
    assert said in found
    assert native_library() == found
    (told,) = caplog.records
    assert told.levelno == logging.WARNING
    assert found in told.getMessage()
    assert "install a working C compiler" in told.getMessage()


def test_the_next_compiler_is_asked_where_one_cannot(
    compiler: Path, load: Callable[[], Found], caplog: pytest.LogCaptureFixture
) -> None:
    compiler.rename(compiler.with_name("clang"))
    script(compiler, "exit 1")
    assert isinstance(load(), ctypes.CDLL)
    assert caplog.messages == []
