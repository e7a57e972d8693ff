"""Ending calls that wait for a next try in vain: one thread for all of them, which is there while any waits.

In an outage thousands may wait at once, so a timer each, which is a thread each, would be one fault more.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable

log = logging.getLogger("specclient.middleware")


class Ticket:
    """One that waits. What is to be done in the end is let go of as soon as it is not to be done any more."""

    __slots__ = ("give_up",)

    def __init__(self, give_up: Callable[[], None]) -> None:
        self.give_up: Callable[[], None] | None = give_up


class Waiting:
    """Those that wait, by their time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tickets: list[tuple[float, int, Ticket]] = []
        self._numbers = itertools.count()
        self._open = 0
        self._thread: threading.Thread | None = None

    def add(self, give_up: Callable[[], None], seconds: float) -> Ticket:
        """Call `give_up` after so many seconds, unless the ticket is taken back."""
        ticket = Ticket(give_up)
        with self._changed:
            heapq.heappush(self._tickets, (time.monotonic() + seconds, next(self._numbers), ticket))
            self._open += 1
            if self._thread is None:
                self._start()
            else:
                self._changed.notify()
        return ticket

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="specclient-given-up", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no room for one, or the interpreter ends: the next call ends what waits
            log.debug("no thread for calls that are given up", exc_info=True)
        else:
            self._thread = thread

    def take_back(self, ticket: Ticket) -> None:
        """It waits no longer."""
        with self._changed:
            self._close(ticket)
            if not self._open:
                self._tickets.clear()
                self._changed.notify()

    def _close(self, ticket: Ticket) -> Callable[[], None] | None:
        give_up, ticket.give_up = ticket.give_up, None
        self._open -= give_up is not None
        return give_up

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._tickets and (left := self._tickets[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left)
                if not self._tickets:
                    self._thread = None
                    return
                give_up = self._close(heapq.heappop(self._tickets)[2])
            if give_up is not None:
                try:
                    give_up()
                except Exception:
                    log.debug("a call that was given up could not be ended", exc_info=True)


WAITING = Waiting()

if hasattr(os, "register_at_fork"):
    # The thread stays behind, and with it perhaps the lock. What waits in the parent is the parent's to end.
    os.register_at_fork(after_in_child=WAITING.__init__)  # type: ignore[misc]
