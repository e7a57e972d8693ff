"""Evidence in one file: shared by threads and processes, and never a reason for a call to fail."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specclient.economics.evidence import Evidence
from specclient.economics.file_store import FileStore
from specclient.economics.state import MemoryStore, Store
from specclient.economics.stores import store_for

NOW = 1.8e9


def add(store: Store, times: int) -> None:
    for _ in range(times):
        store.add("key", "sent", lambda before: before.with_call(10, 1.0), NOW, 7.0)


def add_in_process(path: str, times: int) -> None:
    store = FileStore(path, patience=60)
    add(store, times)
    store.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path / "deep" / "state.db", patience=60)
    yield store
    store.close()


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_both_stores_keep_the_same(kind: str, store: FileStore) -> None:
    kept: Store = MemoryStore() if kind == "memory" else store
    assert kept.read("key", NOW, 7.0) == {}
    add(kept, 3)
    kept.add("other", "without", lambda before: before.with_call(1, 1.0), NOW, 7.0)
    found = kept.read("key", NOW, 7.0)
    assert list(found) == ["sent"]
    assert (found["sent"].n, found["sent"].t, found["sent"].s) == (3, 30, 3)
    week_later = kept.read("key", NOW + 7 * 86_400, 7.0)["sent"]
    assert week_later.n == pytest.approx(1.5)


def test_a_new_process_finds_it(store: FileStore) -> None:
    add(store, 2)
    again = FileStore(store.path)
    assert again.read("key", NOW, 7.0)["sent"].n == 2
    again.close()


def test_several_processes_lose_nothing(store: FileStore) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_in_process, args=(str(store.path), 25)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert store.read("key", NOW, 7.0)["sent"].n == 75


def test_several_threads_lose_nothing(store: FileStore) -> None:
    def work() -> None:
        add(store, 20)
        store.close()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("key", NOW, 7.0)["sent"].n == 100


@pytest.mark.parametrize("damage", ["folder", "garbage"])
def test_a_file_that_cannot_be_used_is_said_once_and_done_without(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.db"
    if damage == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"this is no database, it is something else" * 100)
    store = FileStore(path)
    with caplog.at_level(logging.WARNING):
        add(store, 2)
        assert store.read("key", NOW, 7.0)["sent"].n == 2
    store.close()
    assert [record.name for record in caplog.records] == ["specclient.economics"]


def test_a_file_that_is_held_for_long_misses_a_call_and_no_more(store: FileStore) -> None:
    add(store, 1)
    impatient = FileStore(store.path, patience=0.05)
    add(impatient, 1)
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    add(impatient, 1)
    holder.execute("ROLLBACK")
    holder.close()
    add(impatient, 1)
    assert impatient.read("key", NOW, 7.0)["sent"].n == 3
    impatient.close()


def test_a_change_that_fails_leaves_the_file_as_it_was(store: FileStore) -> None:
    add(store, 1)

    def fail(_: Evidence) -> Evidence:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.add("key", "sent", fail, NOW, 7.0)
    add(store, 1)
    assert store.read("key", NOW, 7.0)["sent"].n == 2


def test_memory_is_bounded() -> None:
    store = MemoryStore(limit=3)
    for number in range(5):
        store.add(str(number), "sent", lambda before: before.with_call(1, 1.0), NOW + number, 7.0)
    kept = [number for number in range(5) if store.read(str(number), NOW + 5, 7.0)]
    assert kept == [2, 3, 4]


def test_targets_that_name_one_file_share_it(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    assert store_for(path) is store_for(path)
    assert store_for(None) is store_for(None)
    assert store_for(path) is not store_for(str(tmp_path / "b.db"))


@pytest.mark.parametrize(
    "figures",
    [("'x'",) * 9, ("NULL",) * 9, ("-5",) * 9, ("9e999",) * 9, ("0",) * 9, ("1", "1", "0", "1") + ("1",) * 5],
)
def test_nonsense_in_the_file_is_no_evidence(tmp_path: Path, figures: tuple[str, ...]) -> None:
    path = tmp_path / "evidence.db"
    store = FileStore(path)
    store.add("k", "sent", lambda before: before.with_call(10, 1.0), 1e9, 7)
    store.close()
    names = ("n", "n2", "t", "s", "tt", "st", "ss", "m", "updated")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        values = ", ".join(f"{name} = {value}" for name, value in zip(names, figures, strict=True))
        connection.execute(f"UPDATE evidence SET {values}")
        connection.commit()
    store = FileStore(path)
    assert store.read("k", 1e9, 7)["sent"].calls == 0
    store.add("k", "sent", lambda before: before.with_call(10, 1.0), 1e9, 7)
    assert store.read("k", 1e9, 7)["sent"].calls == 1
    store.close()
