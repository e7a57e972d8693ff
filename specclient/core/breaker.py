"""A circuit per target: after repeated failures a target is passed over, then tried by one probe."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

from specclient.errors import APIConnectionError, APIStatusError

State = Literal["closed", "open", "probing"]


def counts_as_failure(error: BaseException) -> bool:
    """Whether an error says that the target is unwell: no answer, 429, or 5xx. A 400 says nothing of it."""
    if isinstance(error, APIStatusError):
        return error.status_code == 429 or error.status_code >= 500
    return isinstance(error, APIConnectionError)


class Breaker:
    """Opens after `threshold` failed calls in a row, lets one probe through `seconds` later. Thread-safe.

    Only a call that has another target to go to asks `allows`: with one target the caller gets the
    target's own error, not ours.
    """

    def __init__(
        self, threshold: int = 3, seconds: float = 30.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threshold = threshold
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.RLock()  # the end of a dropped call may come at any allocation
        self._failures = 0
        self._opened = 0.0
        self._probe: float | None = None

    @property
    def state(self) -> State:
        with self._lock:
            if self._failures < self._threshold:
                return "closed"
            return "open" if self._probe is None else "probing"

    def allows(self) -> bool:
        """Whether the target may be asked now. True takes the probe's place when the circuit is open."""
        with self._lock:
            if self._failures < self._threshold:
                return True
            now = self._clock()
            waited = now - (self._opened if self._probe is None else self._probe)
            if waited < self._seconds:
                return False
            self._probe = now  # a probe whose end is never told gives way to another after the same time
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            self._probe = None

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._threshold:
                self._opened = self._clock()
                self._probe = None
