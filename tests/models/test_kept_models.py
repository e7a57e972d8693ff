"""The cache: what is damaged is mended, what was left is shown and taken away, and what cannot be is said."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from specclient_engine import models
from specclient_engine.errors import CacheUnusable, EngineError, NotEnoughDisk
from specclient_engine.models import KnownModel, apart, cache_root, cached, leftovers, locate, remove
from specclient_engine.models.cache import kept_sha256, locked, make_folder
from specclient_engine.models.folders import download_of, folder_of

GGUF = b"GGUF and its numbers"
FILES = {"config.json": b"{}", "tokenizer.json": b'{"a": 1}', "model.safetensors": b"weights" * 10}


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were converted to, by a conversion that takes no time."""
    made: list[Path] = []

    def convert(_file: Path, folder: Path, _progress: object) -> None:
        folder.mkdir()
        for name, content in FILES.items():
            (folder / name).write_bytes(content)
        made.append(folder)

    monkeypatch.setattr(apart, "convert_apart", convert)
    return made


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """A known model whose file is here."""
    row = KnownModel(
        name="tiny",
        title="Tiny",
        file="Tiny.gguf",
        size=len(GGUF),
        sha256=hashlib.sha256(GGUF).hexdigest(),
        licence="MIT",
    )
    monkeypatch.setattr(models, "known_model", {"tiny": row}.get)
    download = download_of(row)
    download.parent.mkdir(parents=True)
    download.write_bytes(GGUF)
    return row


def truncate(folder: Path, name: str) -> None:
    os.truncate(folder / name, 5)


def as_file(folder: Path) -> None:
    empty(folder)
    folder.rmdir()
    folder.write_text("no folder")


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "model.safetensors").unlink(),
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: truncate(folder, "model.safetensors"),
        lambda folder: truncate(folder, "tokenizer.json"),
        empty,
        as_file,
    ],
)
def test_a_damaged_folder_is_none_and_is_made_anew(
    damage: Callable[[Path], None], row: KnownModel, conversions: list[Path]
) -> None:
    folder = locate("tiny").path
    assert cached(row) == folder
    assert leftovers(row) == []
    damage(folder)
    assert cached(row) is None
    assert leftovers(row) == [folder]
    assert locate("tiny").path == folder
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    assert len(conversions) == 2
    locate("tiny")
    assert len(conversions) == 2


def test_each_conversion_has_a_folder_of_its_own_and_clears_others(
    row: KnownModel, conversions: list[Path]
) -> None:
    folder = folder_of(row)
    left = folder.with_name(folder.name + ".unfinished-1234")
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert leftovers(row) == [left]
    locate("tiny")
    assert conversions[0] not in (left, folder)
    assert [path.name for path in folder.parent.iterdir() if path.suffix != ".lock"] == [folder.name]


def test_all_of_a_model_is_removed(row: KnownModel, conversions: list[Path]) -> None:
    folder = locate("tiny").path
    part = download_of(row).with_name("Tiny.gguf.part")
    part.write_bytes(b"123")
    for left in (part.with_name(part.name + ".slices"), part.with_name(part.name + ".hub")):
        left.mkdir()
        (left / "000").write_bytes(b"1234")
    folder.with_name(folder.name + ".unfinished-1").mkdir()
    sizes = folder / "specclient-sizes.json"
    held = sum(map(len, FILES.values())) + sizes.stat().st_size + len(GGUF) + 3 + 4 + 4
    assert remove(row) == held
    left_over = [path.name for path in cache_root().rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left_over == []
    assert remove(row) == 0


def test_what_another_process_works_on_is_not_removed(row: KnownModel) -> None:
    with locked(download_of(row)), pytest.raises(EngineError, match="tiny is being fetched or converted"):
        remove(row)
    assert download_of(row).exists()


def test_whoever_waits_for_another_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    waited = threading.Event()

    def wait() -> None:
        with locked(tmp_path / "model"):
            waited.set()

    with locked(tmp_path / "model"):
        second = threading.Thread(target=wait)
        second.start()
        while not caplog.messages:
            second.join(0.01)
        assert not waited.is_set()
    second.join()
    assert caplog.record_tuples == [
        (
            "specclient_engine.models.cache",
            logging.WARNING,
            "model is being made by another process: waiting for it.",
        )
    ]


@pytest.mark.parametrize("damaged", ["", "1d96", "\udcff", "x" * 64])
def test_less_than_a_whole_hash_names_no_model(
    damaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(GGUF)
    whole = hashlib.sha256(GGUF).hexdigest()
    assert kept_sha256(file) == whole
    (note,) = (cache_root() / "hashes").iterdir()
    note.write_text(damaged, errors="surrogateescape")
    assert kept_sha256(file) == whole
    assert note.read_text() == whole
    monkeypatch.setattr("specclient_engine.models.cache.sha256_of", lambda _: pytest.fail("it is remembered"))
    assert kept_sha256(file) == whole


def test_a_hash_that_cannot_be_kept_is_found_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(GGUF)
    cache_root().parent.mkdir(exist_ok=True)
    cache_root().write_text("a file where the cache should be")
    assert kept_sha256(file) == hashlib.sha256(GGUF).hexdigest()


def test_a_cache_without_a_home_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("SPECCLIENT_CACHE", "~nosuchuser/x")
    with pytest.raises(CacheUnusable, match=r"~nosuchuser/x is below a home.*set SPECCLIENT_CACHE"):
        cache_root()
    monkeypatch.delenv("SPECCLIENT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(CacheUnusable, match=r"~/\.cache is below a home.*set SPECCLIENT_CACHE"):
        cache_root()


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SPECCLIENT_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("SPECCLIENT_MODEL_SOURCES", "hub")
    with pytest.raises(CacheUnusable, match=r"not a directory.*set SPECCLIENT_CACHE"):
        locate("smollm2")
    (tmp_path / "model.lock").mkdir()
    with pytest.raises(CacheUnusable, match="is a directory"), locked(tmp_path / "model"):
        pytest.fail("there is no lock")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(NotEnoughDisk, match="became full"):
        make_folder(tmp_path / "other")


def test_a_disk_that_a_conversion_fills_is_told_as_that(
    row: KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: Path, folder: Path, _progress: object) -> None:
        folder.mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(apart, "convert_apart", full)
    with pytest.raises(NotEnoughDisk, match="became full"):
        locate("tiny")
    assert leftovers(row) == []
