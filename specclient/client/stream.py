"""Streams: iterate the chunks, leave whenever you like."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from specclient.client.chunks import maker
from specclient.core import drive
from specclient.core.flow import Flow
from specclient.report import Report
from specclient.types import Answer

T = TypeVar("T", bound=Answer)


class _Base(Generic[T]):
    _flow: Flow

    @property
    def specclient(self) -> Report | None:
        """The report, once the stream is over; also on its last chunk."""
        return self._flow.report

    @property
    def completed(self) -> bool:
        """Whether the answer came whole."""
        return self._flow.completed

    @property
    def response(self) -> Any:
        """Status and headers of the response as an httpx one, without its body."""
        from specclient.client.raw import http_response

        return http_response(self._flow, b"")


class Stream(_Base[T]):
    """The chunks of one answer.

    Leave it by reading to the end, `close`, a `with` block, or by dropping it: the connection is freed
    and the call's span is ended once, whichever way.
    """

    def __init__(self, flow: Flow, model: type[T]) -> None:
        self._flow = flow
        self._chunks = drive.chunks(flow, maker(model))

    def __iter__(self) -> Iterator[T]:
        return self._chunks

    def __next__(self) -> T:
        return next(self._chunks)

    def close(self) -> None:
        """Stop reading and free the connection, from any thread. Does nothing after the end."""
        drive.close(self._flow, self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncStream(_Base[T]):
    """The async twin of `Stream`."""

    def __init__(self, flow: Flow, chunks: AsyncGenerator[T]) -> None:
        self._flow = flow
        self._chunks = chunks

    @classmethod
    async def begin(cls, flow: Flow, model: type[T]) -> AsyncStream[T]:
        """A stream over a flow whose headers came."""
        return AsyncStream(flow, await drive.achunks(flow, maker(model)))

    def __aiter__(self) -> AsyncIterator[T]:
        return self._chunks

    async def __anext__(self) -> T:
        return await anext(self._chunks)

    async def close(self) -> None:
        """Stop reading and free the connection, from any task. Does nothing after the end."""
        await drive.aclose(self._flow, self._chunks)

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
