"""Where evidence is kept: in this process, or in one file that processes share.

A key names (target, model, workload, who measured); each key has evidence of calls that were sent with
their prediction and of calls that ran without.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, Protocol

from specclient.economics.evidence import DAY, Evidence

Arm = Literal["sent", "without"]
Key = str


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
        self._lock = threading.RLock()  # the end of a dropped call may come at any allocation

    def read(self, key: Key, now: float, half_life_days: float) -> dict[Arm, Evidence]:
        with self._lock:
            found = {arm: self._known.get((key, arm)) for arm in ("sent", "without")}
        return {arm: faded(each, now, half_life_days) for arm, each in found.items() if each}  # type: ignore[misc]

    def add(
        self, key: Key, arm: Arm, change: Callable[[Evidence], Evidence], now: float, half_life_days: float
    ) -> None:
        with self._lock:
            if (key, arm) not in self._known and len(self._known) >= self._limit:
                del self._known[min(self._known, key=lambda place: self._known[place].updated)]
            before = self._known.get((key, arm), Evidence())
            self._known[key, arm] = change(faded(before, now, half_life_days))


def faded(evidence: Evidence, now: float, half_life_days: float) -> Evidence:
    """Evidence as it counts at `now`."""
    return evidence.faded(now, half_life=half_life_days * DAY)


def now() -> float:
    """Seconds since the epoch: evidence outlives processes, so it cannot be on a monotonic clock."""
    return time.time()
