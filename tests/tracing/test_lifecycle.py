"""Every way out of a stream ends its call once, with the right outcome, and leaks no context."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from tracing_helpers import Backend

from specclient.report import Report
from specclient.tracing import Call, CallStart, Finaliser, ResponseFacts, outcome_of, start_call

CHUNKS = 3


class State:
    """What a stream knows of its call; the finaliser holds this and never the stream."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.texts: list[str] = []

    def settle(self, outcome: Any, error: BaseException | None) -> None:
        report = Report(
            target="t", provider="p", model="m", timing=self.call.timeline.timing(None, streamed=True)
        )
        self.call.finish(report, ResponseFacts(finish_reasons=[None]), outcome, error)

    def read(self) -> str:
        with self.call.current():
            self.call.timeline.frame()
            self.call.timeline.content()
        return "text"


class Stream:
    """The least stream that a door could build on `Finaliser`, sync and async."""

    def __init__(self, call: Call, fault: BaseException | None = None) -> None:
        self.state = State(call)
        self.end = Finaliser(self.state.settle)
        self.end.watch(self)
        self.fault = fault
        self.left = CHUNKS

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return self._next(StopIteration)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        try:
            await asyncio.sleep(0)
        except BaseException as error:
            self.end.failed(error)
            raise
        return self._next(StopAsyncIteration)

    def _next(self, stop: type[Exception]) -> str:
        if self.left == 0 or self.end.ended:
            self.end.completed()
            raise stop
        if self.fault is not None and self.left == 1:
            self.end.failed(self.fault)
            raise self.fault
        self.left -= 1
        return self.state.read()

    def close(self) -> None:
        self.end.closed()

    async def aclose(self) -> None:
        self.end.closed()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end("closed_by_caller" if error is None else outcome_of(error), error)

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


@pytest.fixture
def make(backend: Backend) -> Any:
    def make(fault: BaseException | None = None) -> Stream:
        return Stream(start_call(CallStart(provider="p", model="m", stream=True), backend.options()), fault)

    return make


@pytest.fixture(autouse=True)
def no_context_leaks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    before = trace.get_current_span()
    with caplog.at_level(logging.DEBUG):
        yield
        assert trace.get_current_span() is before
    gc.collect()
    assert "Failed to detach context" not in caplog.text


def exhaust(stream: Stream) -> None:
    assert list(stream) == ["text"] * CHUNKS


def leave_early(stream: Stream) -> None:
    before = trace.get_current_span()
    for _ in stream:
        assert trace.get_current_span() is before
        break


def close(stream: Stream) -> None:
    next(stream)
    stream.close()


def with_break(stream: Stream) -> None:
    with stream:
        leave_early(stream)


def read_and_fail(stream: Stream) -> None:
    with stream:
        for _ in stream:
            _ = 1 // 0


def raise_in_body(stream: Stream) -> None:
    with pytest.raises(ZeroDivisionError):
        read_and_fail(stream)


def provider_fault(stream: Stream) -> None:
    stream.fault = ConnectionError("reset")
    with pytest.raises(ConnectionError):
        list(stream)


def never_iterated(stream: Stream) -> None:
    pass


def iterated_twice(stream: Stream) -> None:
    exhaust(stream)
    assert list(stream) == []


def close_twice(stream: Stream) -> None:
    stream.close()
    stream.close()


WAYS = [
    (exhaust, "completed", StatusCode.UNSET),
    (leave_early, "abandoned", StatusCode.ERROR),
    (close, "closed_by_caller", StatusCode.UNSET),
    (with_break, "closed_by_caller", StatusCode.UNSET),
    (raise_in_body, "error", StatusCode.ERROR),
    (provider_fault, "error", StatusCode.ERROR),
    (never_iterated, "abandoned", StatusCode.ERROR),
    (iterated_twice, "completed", StatusCode.UNSET),
    (close_twice, "closed_by_caller", StatusCode.UNSET),
]


@pytest.mark.parametrize(("way", "outcome", "status"), WAYS)
def test_sync(backend: Backend, make: Any, way: Any, outcome: str, status: StatusCode) -> None:
    stream = make()
    way(stream)
    del stream
    gc.collect()
    span = backend.span("chat m")
    assert span.attributes["specclient.stream.outcome"] == outcome
    assert span.status.status_code is status


async def aexhaust(stream: Stream) -> None:
    assert [text async for text in stream] == ["text"] * CHUNKS


async def aleave_early(stream: Stream) -> None:
    before = trace.get_current_span()
    async for _ in stream:
        assert trace.get_current_span() is before
        break


async def aclose(stream: Stream) -> None:
    await anext(stream)
    await stream.aclose()


async def awith_break(stream: Stream) -> None:
    async with stream:
        await aleave_early(stream)


async def aread_and_fail(stream: Stream) -> None:
    async with stream:
        async for _ in stream:
            _ = 1 // 0


async def araise_in_body(stream: Stream) -> None:
    with pytest.raises(ZeroDivisionError):
        await aread_and_fail(stream)


async def aprovider_fault(stream: Stream) -> None:
    stream.fault = ConnectionError("reset")
    with pytest.raises(ConnectionError):
        await aexhaust(stream)


async def cancel(stream: Stream) -> None:
    task = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def timeout(stream: Stream) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await aexhaust(stream)


async def anever_iterated(stream: Stream) -> None:
    pass


async def aiterated_twice(stream: Stream) -> None:
    await aexhaust(stream)
    assert [text async for text in stream] == []


AWAYS = [
    (aexhaust, "completed", StatusCode.UNSET),
    (aleave_early, "abandoned", StatusCode.ERROR),
    (aclose, "closed_by_caller", StatusCode.UNSET),
    (awith_break, "closed_by_caller", StatusCode.UNSET),
    (araise_in_body, "error", StatusCode.ERROR),
    (aprovider_fault, "error", StatusCode.ERROR),
    (cancel, "cancelled", StatusCode.ERROR),
    (timeout, "cancelled", StatusCode.ERROR),
    (anever_iterated, "abandoned", StatusCode.ERROR),
    (aiterated_twice, "completed", StatusCode.UNSET),
]


@pytest.mark.parametrize(("way", "outcome", "status"), AWAYS)
def test_async(backend: Backend, make: Any, way: Any, outcome: str, status: StatusCode) -> None:
    async def run() -> None:
        stream = make()
        await way(stream)
        del stream
        gc.collect()

    asyncio.run(run())
    span = backend.span("chat m")
    assert span.attributes["specclient.stream.outcome"] == outcome
    assert span.status.status_code is status


def test_dropped_in_another_task(backend: Backend, make: Any) -> None:
    async def reader(box: list[Stream]) -> None:
        await anext(box[0])
        box.clear()

    async def run() -> None:
        box = [make()]
        await asyncio.create_task(reader(box))
        gc.collect()

    asyncio.run(run())
    assert backend.span("chat m").attributes["specclient.stream.outcome"] == "abandoned"


def test_threads_that_end_it_at_once_end_it_once(backend: Backend, make: Any) -> None:
    stream = make()
    barrier = threading.Barrier(8)
    won: list[bool] = []

    def end() -> None:
        barrier.wait()
        won.append(stream.end.closed())

    threads = [threading.Thread(target=end) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]
    assert backend.names() == ["chat m"]


def test_held_open_there_is_no_span_until_it_is_closed(backend: Backend, make: Any) -> None:
    stream = make()
    next(stream)
    assert backend.finished() == ()
    stream.close()
    assert backend.names() == ["chat m"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "completed"),
        (GeneratorExit(), "closed_by_caller"),
        (asyncio.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (TimeoutError(), "error"),
        (ValueError(), "error"),
    ],
)
def test_outcome_of_an_exception(error: BaseException | None, outcome: str) -> None:
    assert outcome_of(error) == outcome
