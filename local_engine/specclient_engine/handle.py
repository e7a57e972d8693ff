"""The two ends of one request: the worker posts steps into a mailbox, the caller's handle reads them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Self

from specclient_engine.api import GenerationStats, Step


class Mailbox:
    """What the worker posts, kept until someone reads it. The worker holds this end only.

    Any number of threads and event loops may wait at once. `cancelled` is a bare flag that the worker
    looks at between steps: the garbage collector may raise it at any moment, in any thread, so raising
    it takes no lock.
    """

    def __init__(self) -> None:
        self.cancelled = False
        self.stats: GenerationStats | None = None
        self._steps: deque[Step] = deque()
        self._error: Exception | None = None
        self._ended = False
        self._changed = threading.Condition()
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def post(self, step: Step) -> None:
        """Adds a step; one with a finish reason is the last."""
        with self._changed:
            self._steps.append(step)
            self._ended = step.finish_reason is not None
            self._wake()

    def fail(self, error: Exception) -> None:
        """Ends the request with an error, raised to the reader behind the steps posted so far."""
        with self._changed:
            self._error = error
            self._ended = True
            self._wake()

    def cancel(self) -> None:
        """Asks the worker to end the request at the next step."""
        self.cancelled = True

    def wait(self, timeout: float | None = None) -> Step | None:
        """The next step; None behind the last one. Raises TimeoutError after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._steps or self._ended, timeout):
                raise TimeoutError
            return self._next()

    async def wait_async(self) -> Step | None:
        """As `wait`, without blocking the running event loop."""
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._steps or self._ended:
                    return self._next()
                sleeper = (loop, loop.create_future())
                self._sleepers.append(sleeper)
            try:
                await sleeper[1]
            finally:
                with self._changed, contextlib.suppress(ValueError):
                    self._sleepers.remove(sleeper)

    def _next(self) -> Step | None:
        if self._steps:
            return self._steps.popleft()
        if self._error is not None:
            raise self._error
        return None

    def _wake(self) -> None:
        self._changed.notify_all()
        for loop, sleeper in self._sleepers:
            # A loop that was closed has no one left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, sleeper)
        self._sleepers.clear()


def _settle(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class Handle:
    """A running request: iterate it, with `for` or `async for`, over its steps.

    The step with a `finish_reason` is the last; `stats` are there from then on. A handle that nobody
    holds any more, or whose `with` block was left, cancels its request. Iterating raises what ended the
    request, if it did not end well.
    """

    def __init__(self, mailbox: Mailbox, engine: object = None) -> None:
        self._mailbox = mailbox
        # An engine that nobody else holds must last as long as its requests are read.
        self._engine = engine
        weakref.finalize(self, mailbox.cancel).atexit = False

    @property
    def stats(self) -> GenerationStats | None:
        """The account of the request; None while it runs, or when it ended in an error."""
        return self._mailbox.stats

    def cancel(self) -> None:
        """Ends the request before its next step: its last step then says `cancelled`."""
        self._mailbox.cancel()

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = self._mailbox.wait()
        if step is None:
            raise StopIteration
        return step

    def next(self, timeout: float | None = None) -> Step | None:
        """The next step; None behind the last. Raises TimeoutError when `timeout` seconds bring none."""
        return self._mailbox.wait(timeout)

    def __aiter__(self) -> AsyncIterator[Step]:
        return self

    async def __anext__(self) -> Step:
        step = await self._mailbox.wait_async()
        if step is None:
            raise StopAsyncIteration
        return step

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
