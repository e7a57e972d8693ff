"""The limits of one attempt, asked for anew at every read.

A socket timeout that is set once cannot tell a slow prefill from a stalled answer, and a keep-alive
comment would start it again. A `Wire` is therefore handed down to the network stream as the `timeout`,
and says before each read how long that read may take: the time left of whichever limit is nearest.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from specclient.config.target import Timeout
from specclient.core.timeline import Timeline

NANOSECONDS = 1_000_000_000
AFTER_FINISH_SECONDS = 5.0
"""How long to wait for usage and [DONE] once every choice has a finish reason."""
WAITING_SECONDS = 1.0
"""How long to read for bytes that are there already."""
DRAIN_SECONDS = 0.1
"""How long to wait for the end of the body after [DONE], so that the connection can be used again."""


class LimitReached(Exception):
    """A limit ran out before or during an operation; `limit` names it."""

    def __init__(self, limit: str, seconds: float) -> None:
        super().__init__(limit)
        self.limit = limit
        self.seconds = seconds


class Wire:
    """Limits and stamps of one attempt. `deadline` is the call's own end, on `time.perf_counter_ns`."""

    __slots__ = (
        "_deadline",
        "_drain",
        "_finished",
        "_limit",
        "_spared",
        "_touched",
        "got_headers",
        "joins_body",
        "timeline",
        "timeout",
    )

    def __init__(self, timeout: Timeout, timeline: Timeline, deadline: int | None = None) -> None:
        self.timeout = timeout
        self.timeline = timeline
        self.got_headers = False
        self.joins_body = False
        """The next piece to be written is a head whose body follows at once."""
        self._deadline = deadline
        self._touched: int | None = None
        self._finished: int | None = None
        self._drain: int | None = None
        self._limit: tuple[str, float] = ("connect", 0.0)
        self._spared: int | None = None

    @property
    def deadline(self) -> int | None:
        """The call's own end, for another request that is made on its behalf."""
        return self._deadline

    def connect(self) -> float | None:
        """Seconds that opening the connection may take."""
        return self._seconds("connect", self.timeout.connect, time.perf_counter_ns())

    def pool(self) -> float | None:
        """Seconds to wait for a free connection."""
        return self._seconds("pool", self.timeout.pool, time.perf_counter_ns())

    def write(self) -> float | None:
        """Seconds that sending one piece may take."""
        return self._seconds("write", self.timeout.write, time.perf_counter_ns())

    def read(self) -> float | None:
        """Seconds that the next read may take."""
        timeout, attempt = self.timeout, self.timeline.attempt
        last = attempt.last_content
        if last is not None and self._finished is None and self._drain is None:
            idle = timeout.content_idle
            if idle is None or self._deadline is not None:
                return self._seconds("content_idle", idle, last)
            left = idle - (time.perf_counter_ns() - last) / NANOSECONDS
            if left <= 0:
                raise LimitReached("content_idle", idle)
            self._limit = ("content_idle", idle)
            return left
        if self._drain is not None:
            return self._seconds("drain", DRAIN_SECONDS, self._drain)
        if self._finished is not None:
            idle = timeout.content_idle
            wait = AFTER_FINISH_SECONDS if idle is None else min(idle, AFTER_FINISH_SECONDS)
            return self._seconds("after_finish", wait, self._finished)
        if self._touched is not None:
            return self._seconds("content_idle", timeout.content_idle, self._touched)
        if self.got_headers:
            return self._seconds("first_content", timeout.first_content, attempt.issued)
        return self._seconds("first_byte", timeout.first_byte, attempt.issued)

    def read_waiting(self, waiting: Callable[[], bool]) -> float | None:
        """`read`, but bytes that came while nobody asked for them are not late: `waiting` tells of any.

        Once after each content, so that what holds none does not keep a stream open.
        """
        try:
            return self.read()
        except LimitReached as reached:
            last = self.timeline.attempt.last_content
            if reached.limit != "content_idle" or last is None or last == self._spared or not waiting():
                raise
            self._spared = last
            self._limit = reached.limit, reached.seconds
            return WAITING_SECONDS

    @property
    def only_idle(self) -> bool:
        """Whether nothing but `content_idle` limits a read once content came."""
        return self._deadline is None and self._finished is None and self._drain is None

    def touch(self) -> None:
        """Part of a plain body came: content, for the limits."""
        self._touched = time.perf_counter_ns()

    def finished(self) -> None:
        """Every choice has its finish reason; only usage and the end are still to come."""
        self._finished = time.perf_counter_ns()

    def drain(self) -> None:
        """[DONE] was read; what is left is read for a moment only."""
        self._drain = time.perf_counter_ns()

    def reached(self) -> LimitReached:
        """The error for the limit that was nearest when the last operation began."""
        return LimitReached(*self._limit)

    def _seconds(self, name: str, limit: float | None, since: int) -> float | None:
        until = None if limit is None else since + int(limit * NANOSECONDS)
        if self._deadline is not None and (until is None or self._deadline < until):
            name, until = "total", self._deadline
            limit = self.timeout.total
        self._limit = (name, limit or 0.0)
        if until is None:
            return None
        left = (until - time.perf_counter_ns()) / NANOSECONDS
        if left <= 0:
            raise LimitReached(name, limit or 0.0)
        return left
