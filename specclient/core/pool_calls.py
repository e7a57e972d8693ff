"""Closing a response where it can be closed.

httpcore's pool hands out connections and takes them back under a plain lock, and closing a response takes
that lock. A response that is dropped unread is closed by whatever collects it. Where that is the garbage
collector, called by an allocation under the lock, the thread would wait for itself for ever. So every call
into a pool is made inside `POOL_CALLS`, and what the collector wants closed meanwhile waits for its end.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

log = logging.getLogger(__name__)


class PoolCalls(threading.local):
    """A thread's calls into pools: a context manager that may be nested."""

    def __init__(self) -> None:
        self._depth = 0
        self._waiting: deque[Callable[[], object]] = deque()

    @property
    def busy(self) -> bool:
        """Whether this thread is inside a pool now: who asks is then at work for the garbage collector."""
        return self._depth > 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if self._depth == 1 and self._waiting:
            self._close_waiting()
        self._depth -= 1

    def dropped(self, close: Callable[[], object]) -> None:
        """Close what was collected without having been closed: now, or at the end of the call under way."""
        self._waiting.append(close)
        if not self._depth:
            with self:
                pass

    def _close_waiting(self) -> None:
        while self._waiting:
            close = self._waiting.popleft()
            try:
                close()
            except Exception:
                log.debug("a dropped response could not be closed", exc_info=True)


POOL_CALLS = PoolCalls()


def closed_when_dropped(
    owner: object, close: Callable[[], object], blocks: object
) -> weakref.finalize[..., object]:
    """Makes `close` come to pass when `owner` is collected, or once the result is called.

    `blocks`, the iterator over the response, is held until then: collected before, it would close the
    response by itself, whatever the moment.
    """
    dropped = weakref.finalize(owner, _dropped, close, blocks)
    dropped.atexit = False
    return dropped


def _dropped(*held: Any) -> None:
    POOL_CALLS.dropped(partial(_close, *held))


def _close(close: Callable[[], object], _blocks: object) -> None:
    close()
