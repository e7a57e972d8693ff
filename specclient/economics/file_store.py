"""Evidence in one SQLite file, for all threads and processes of a user."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from specclient.economics.evidence import Evidence
from specclient.economics.state import Arm, Key, MemoryStore, faded

log = logging.getLogger("specclient.economics")

_COLUMNS = "n, n2, t, s, tt, st, ss, m, updated"


class FileStore:
    """Evidence in one SQLite file, for all threads and processes of a user.

    A file that cannot be used is said once in the log; evidence is then kept in this process. One that
    another process holds for longer than `patience` seconds misses a call: no answer waits for it.
    """

    def __init__(self, path: str | Path, *, patience: float = 0.5) -> None:
        self.path = Path(path).expanduser()
        self._patience = patience
        self._local = threading.local()
        self._instead: MemoryStore | None = None
        self._lock = threading.RLock()  # the end of a dropped call may come at any allocation

    def read(self, key: Key, now: float, half_life_days: float) -> dict[Arm, Evidence]:
        if self._instead is None:
            try:
                rows = self._connection().execute(
                    f"SELECT arm, {_COLUMNS} FROM evidence WHERE key = ?", (key,)
                )
                return {
                    arm: faded(Evidence.from_figures(figures), now, half_life_days) for arm, *figures in rows
                }
            except (sqlite3.Error, OSError) as error:
                if _busy(error):
                    return {}
                self._give_up(error)
        assert self._instead is not None
        return self._instead.read(key, now, half_life_days)

    def add(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        if self._instead is None:
            # Threads wait for each other here, where the file would send one away.
            if not self._lock.acquire(timeout=self._patience):
                return
            try:
                self._update_patiently(key, arm, change, now, half_life_days)
                return
            except (sqlite3.Error, OSError) as error:
                if _busy(error):
                    return
                self._give_up(error)
            finally:
                self._lock.release()
        assert self._instead is not None
        self._instead.add(key, arm, change, now, half_life_days)

    def _update_patiently(self, *change: Any) -> None:
        """Opening the file does not wait for another process by itself, as updating it does."""
        for attempt in Retrying(
            retry=retry_if_exception(_busy),
            stop=stop_after_delay(self._patience),
            wait=wait_random(0.001, 0.02),
            reraise=True,
        ):
            with attempt:
                self._update(*change)

    def _update(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        connection = self._connection()
        if connection.in_transaction:  # the end of a dropped call, in the middle of another's: it is missed
            return
        # Two processes must not read the same sums and both add to them.
        connection.execute("BEGIN IMMEDIATE")
        try:
            place = "key = ? AND arm = ?"
            row = connection.execute(f"SELECT {_COLUMNS} FROM evidence WHERE {place}", (key, arm)).fetchone()
            before = Evidence.from_figures(row) if row else Evidence()
            after = change(faded(before, now, half_life_days))
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
            connection = _opened(self.path, self._patience)
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


def _busy(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest tells kinds of each apart
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _opened(path: Path, patience: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
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
