"""Where evidence is kept: in this process, or in one file that processes share.

A key names (target, model, workload, who measured); each key has evidence of calls that were sent with
their prediction and of calls that ran without.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Literal, Protocol

from specclient.economics.evidence import DAY, Evidence

log = logging.getLogger("specclient.economics")

Arm = Literal["sent", "without"]
Key = str

_COLUMNS = "n, n2, t, s, tt, st, ss, m, updated"


class Store(Protocol):
    """Reads and updates evidence. Safe for threads; never raises into a call."""

    def read(self, key: Key, now: float, half_life_days: float) -> dict[Arm, Evidence]:
        """The evidence for a key, faded to `now`; an arm without any is absent."""
        ...

    def add(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        """Apply `change` to one arm's evidence."""
        ...


class MemoryStore:
    """Evidence of this process."""

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._known: dict[tuple[Key, Arm], Evidence] = {}
        self._lock = threading.Lock()

    def read(self, key: Key, now: float, half_life_days: float) -> dict[Arm, Evidence]:
        with self._lock:
            found = {arm: self._known.get((key, arm)) for arm in ("sent", "without")}
        return {arm: _faded(each, now, half_life_days) for arm, each in found.items() if each}  # type: ignore[misc]

    def add(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        with self._lock:
            if (key, arm) not in self._known and len(self._known) >= self._limit:
                del self._known[min(self._known, key=lambda place: self._known[place].updated)]
            before = self._known.get((key, arm), Evidence())
            self._known[key, arm] = change(_faded(before, now, half_life_days))


class FileStore:
    """Evidence in one SQLite file, for all threads and processes of a user.

    A file that cannot be used is said once in the log; evidence is then kept in this process.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._local = threading.local()
        self._instead: MemoryStore | None = None
        self._lock = threading.Lock()

    def read(self, key: Key, now: float, half_life_days: float) -> dict[Arm, Evidence]:
        if self._instead is None:
            try:
                rows = self._connection().execute(
                    f"SELECT arm, {_COLUMNS} FROM evidence WHERE key = ?", (key,)
                )
                return {arm: _faded(Evidence(*figures), now, half_life_days) for arm, *figures in rows}
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)
        assert self._instead is not None
        return self._instead.read(key, now, half_life_days)

    def add(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        if self._instead is None:
            try:
                self._update(key, arm, change, now, half_life_days)
                return
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)
        assert self._instead is not None
        self._instead.add(key, arm, change, now, half_life_days)

    def _update(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        connection = self._connection()
        connection.execute(
            "BEGIN IMMEDIATE"
        )  # two processes must not read the same sums and both add to them
        try:
            place = "key = ? AND arm = ?"
            row = connection.execute(f"SELECT {_COLUMNS} FROM evidence WHERE {place}", (key, arm)).fetchone()
            before = Evidence(*row) if row else Evidence()
            after = change(_faded(before, now, half_life_days))
            marks = ", ".join("?" * 11)
            connection.execute(
                f"INSERT OR REPLACE INTO evidence VALUES ({marks})", (key, arm, *astuple(after))
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _connection(self) -> sqlite3.Connection:
        """This thread's own connection; a forked child must not use its parent's."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or self._local.pid != os.getpid():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = _opened(self.path)
            self._local.connection, self._local.pid = connection, os.getpid()
        return connection

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            if self._instead is None:
                log.warning("evidence is kept in memory: %s cannot be used (%s)", self.path, error)
                self._instead = MemoryStore()

    def close(self) -> None:
        """Close this thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS evidence (key TEXT, arm TEXT, "
            f"{_COLUMNS.replace(',', ' REAL,')} REAL, PRIMARY KEY (key, arm))"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _faded(evidence: Evidence, now: float, half_life_days: float) -> Evidence:
    return evidence.faded(now, half_life=half_life_days * DAY)


_stores: dict[str | None, Store] = {}
_stores_lock = threading.Lock()


def store_for(state: str | None) -> Store:
    """The store of a file (None: of this process); all targets that name it share it."""
    with _stores_lock:
        if state not in _stores:
            _stores[state] = MemoryStore() if state is None else FileStore(state)
        return _stores[state]


def now() -> float:
    """Seconds since the epoch: evidence outlives processes, so it cannot be on a monotonic clock."""
    return time.time()
