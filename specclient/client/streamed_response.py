"""`with_streaming_response`: a response whose body is read inside its `with` block.

    with client.chat.completions.with_streaming_response.create(messages=…, stream=True) as response:
        print(response.headers["x-request-id"])
        for line in response.iter_lines():
            …

The body is written anew from the objects that were read, so that its report is in it; it is not what came
byte for byte. `parse()` is the answer, or the stream.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any

from specclient.client.raw import RawResponse
from specclient.client.stream import AsyncStream, Stream
from specclient.types import Answer

_DONE = b"data: [DONE]\n\n"


def _event(chunk: Answer) -> bytes:
    return b"data: " + chunk.to_json(indent=None).encode() + b"\n\n"


def _cut(block: bytes, size: int | None) -> Iterator[bytes]:
    if size is None:
        yield block
    else:
        yield from (block[begin : begin + size] for begin in range(0, len(block), size))


def _text(block: bytes, size: int | None) -> Iterator[str]:
    text = block.decode()
    step = size or max(len(text), 1)
    yield from (text[begin : begin + step] for begin in range(0, len(text), step))


def _lines(block: bytes) -> list[str]:
    return block.decode().split("\n")[: -1 if block.endswith(b"\n") else None]


class StreamedResponse(RawResponse[Any]):
    """Status and headers at once, the body when it is asked for."""

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """The body: a stream's events one by one, a plain answer whole, or pieces of at most `chunk_size`."""
        if isinstance(self._parsed, Stream):
            for chunk in self._parsed:
                yield from _cut(_event(chunk), chunk_size)
            yield from _cut(_DONE, chunk_size)
        else:
            yield from _cut(self.content, chunk_size)

    def iter_text(self, chunk_size: int | None = None) -> Iterator[str]:
        """The body as text; `chunk_size` is in characters."""
        for block in self.iter_bytes():
            yield from _text(block, chunk_size)

    def iter_lines(self) -> Iterator[str]:
        """The lines of the body, without their ends."""
        for block in self.iter_bytes():
            yield from _lines(block)

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.iter_bytes())

    def text(self) -> str:  # type: ignore[override]  # a method here and a property there, as in OpenAI's SDK
        return self.read().decode()

    def json(self) -> Any:
        return json.loads(self.read())

    def close(self) -> None:
        """Leave the body unread and free the connection."""
        if isinstance(self._parsed, Stream):
            self._parsed.close()


class StreamedResponseManager:
    """The request is sent on entry, and the response closed on exit."""

    def __init__(self, start: Callable[[], RawResponse[Any]]) -> None:
        self._start = start
        self._open: StreamedResponse | None = None

    def __enter__(self) -> StreamedResponse:
        self._open = StreamedResponse.of(self._start())
        return self._open

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.close()


class AsyncStreamedResponse(RawResponse[Any]):
    """The async twin of `StreamedResponse`: what reads the body, `parse` included, is awaited."""

    async def iter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """See `StreamedResponse.iter_bytes`."""
        if isinstance(self._parsed, AsyncStream):
            async for chunk in self._parsed:
                for piece in _cut(_event(chunk), chunk_size):
                    yield piece
            for piece in _cut(_DONE, chunk_size):
                yield piece
        else:
            for piece in _cut(self.content, chunk_size):
                yield piece

    async def iter_text(self, chunk_size: int | None = None) -> AsyncIterator[str]:
        """See `StreamedResponse.iter_text`."""
        async for block in self.iter_bytes():
            for piece in _text(block, chunk_size):
                yield piece

    async def iter_lines(self) -> AsyncIterator[str]:
        """See `StreamedResponse.iter_lines`."""
        async for block in self.iter_bytes():
            for line in _lines(block):
                yield line

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([block async for block in self.iter_bytes()])

    async def text(self) -> str:  # type: ignore[override]
        return (await self.read()).decode()

    async def json(self) -> Any:
        return json.loads(await self.read())

    async def parse(self) -> Any:
        """The answer, or the stream."""
        return self._parsed

    async def close(self) -> None:
        """Leave the body unread and free the connection."""
        if isinstance(self._parsed, AsyncStream):
            await self._parsed.close()


class AsyncStreamedResponseManager:
    """The async twin of `StreamedResponseManager`."""

    def __init__(self, start: Callable[[], Awaitable[RawResponse[Any]]]) -> None:
        self._start = start
        self._open: AsyncStreamedResponse | None = None

    async def __aenter__(self) -> AsyncStreamedResponse:
        self._open = AsyncStreamedResponse.of(await self._start())
        return self._open

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.close()
