"""`chat.completions.stream(...)`: a stream as typed events, with the answer so far at each one.

    with client.chat.completions.stream(messages=…) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="")
        answer = stream.get_final_completion()

Event types: `chunk` (every chunk as it came), `content.delta` and `content.done`, `refusal.delta` and
`refusal.done`, `logprobs.content.delta` and `.done`, `logprobs.refusal.delta` and `.done`,
`tool_calls.function.arguments.delta` and `.done`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any

from specclient.client.accumulator import Accumulator, Event
from specclient.client.stream import AsyncStream, Stream
from specclient.errors import SpecclientError
from specclient.report import Report
from specclient.types import ChatCompletion, ChatCompletionChunk


def _incomplete() -> SpecclientError:
    return SpecclientError("The stream was not read to its end, so there is no final completion.")


class ChatStream:
    """The events of one stream. See the module's docstring."""

    def __init__(self, stream: Stream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self._accumulator = Accumulator()
        self._events = self._read()

    def _read(self) -> Iterator[Event]:
        for chunk in self._stream:
            yield from self._accumulator.feed(chunk)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        return next(self._events)

    @property
    def current_completion_snapshot(self) -> ChatCompletion:
        return self._accumulator.snapshot()

    @property
    def specclient(self) -> Report | None:
        """The report, once the stream is over."""
        return self._stream.specclient

    @property
    def response(self) -> Any:
        return self._stream.response

    def until_done(self) -> ChatStream:
        """Read what is left."""
        for _ in self._events:
            pass
        return self

    def get_final_completion(self) -> ChatCompletion:
        """The whole answer; reads what is left."""
        self.until_done()
        if not self._stream.completed:
            raise _incomplete()
        return self._accumulator.snapshot()

    def close(self) -> None:
        self._stream.close()


class ChatStreamManager:
    """`with … as stream`: the request is sent on entry, the stream closed on exit."""

    def __init__(self, start: Callable[[], Stream[ChatCompletionChunk]]) -> None:
        self._start = start
        self._open: ChatStream | None = None

    def __enter__(self) -> ChatStream:
        self._open = ChatStream(self._start())
        return self._open

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.close()


class AsyncChatStream:
    """The async twin of `ChatStream`."""

    def __init__(self, stream: AsyncStream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self._accumulator = Accumulator()
        self._events = self._read()

    async def _read(self) -> AsyncIterator[Event]:
        async for chunk in self._stream:
            for event in self._accumulator.feed(chunk):
                yield event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def __anext__(self) -> Event:
        return await anext(self._events)

    @property
    def current_completion_snapshot(self) -> ChatCompletion:
        return self._accumulator.snapshot()

    @property
    def specclient(self) -> Report | None:
        """The report, once the stream is over."""
        return self._stream.specclient

    @property
    def response(self) -> Any:
        return self._stream.response

    async def until_done(self) -> AsyncChatStream:
        """Read what is left."""
        async for _ in self._events:
            pass
        return self

    async def get_final_completion(self) -> ChatCompletion:
        """The whole answer; reads what is left."""
        await self.until_done()
        if not self._stream.completed:
            raise _incomplete()
        return self._accumulator.snapshot()

    async def close(self) -> None:
        await self._stream.close()


class AsyncChatStreamManager:
    """The async twin of `ChatStreamManager`."""

    def __init__(self, start: Callable[[], Awaitable[AsyncStream[ChatCompletionChunk]]]) -> None:
        self._start = start
        self._open: AsyncChatStream | None = None

    async def __aenter__(self) -> AsyncChatStream:
        self._open = AsyncChatStream(await self._start())
        return self._open

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.close()
