"""Cancellation that keeps a connection pool's books straight.

httpcore takes a lock between connecting and sending, and another while it gives a connection back. Taking
a free lock is a mere checkpoint (a bare yield to the event loop), but `Task.cancel` strikes there as well,
and anyio's shields do not stop it: the connection is then counted as busy for ever. A `Steady` awaitable
puts such a cancellation off until the next real wait, or to the caller's next await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Steady(Generic[T]):
    """Await this instead of the coroutine. Costs no task."""

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._coroutine
        put_off: asyncio.CancelledError | None = None
        fault: BaseException | None = None
        value: Any = None
        try:
            while True:
                try:
                    waited = coroutine.send(value) if fault is None else coroutine.throw(fault)
                except StopIteration as stop:
                    result: T = stop.value
                    return result
                if waited is not None and put_off is not None:
                    _cancel(put_off)
                    put_off = None
                value, fault = None, None
                try:
                    value = yield waited
                except asyncio.CancelledError as cancelled:
                    if waited is not None:
                        fault = cancelled
                    else:
                        put_off = cancelled
                        _current().uncancel()
                except BaseException as thrown:
                    fault = thrown
        finally:
            if put_off is not None:
                _cancel(put_off)


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _cancel(cancelled: asyncio.CancelledError) -> None:
    _current().cancel(*cancelled.args[:1])
