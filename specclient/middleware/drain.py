"""Reading the few bytes that follow `[DONE]`, so that the connection can carry the next call.

A stream of events says that it is over before HTTP does: `[DONE]` comes, then the end of the chunked
body. An SDK that stops at `[DONE]` closes the response with the body unfinished, and HTTP/1.1 then has to
throw the connection away; the next call pays for a new one. The rest is nearly always in the buffer
already, but a server may hold the socket open, so each read is bounded: the connection's own stream
(`network_stream`, an extension of the response) gets a `read` with a short limit for as long as it takes.
An async transport that shows no such stream (aiohttp's, which the Fireworks SDK brings) is given the same
time by the event loop. An SDK that reads on after `[DONE]` (Groq's does) gets what came within that time.
HTTP/2 closes one stream without closing the connection and needs none of this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

LIMIT = 0.1
"""Seconds that a caller may wait for the end of the body. Past it the connection is given up, as before."""

ROUNDS = 8
"""Reads at most: what follows `[DONE]` is the end of the body, not more data."""


class _Bounded:
    """Shadows `network_stream.read` with one that honours `LIMIT`; `lift` takes the shadow away."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._until = time.monotonic() + LIMIT

    def impose(self) -> None:
        plain = self._stream.read

        def read(max_bytes: int, timeout: float | None = None) -> Any:
            left = max(self._until - time.monotonic(), 0.001)
            return plain(max_bytes, left if timeout is None else min(left, timeout))

        self._stream.read = read

    def lift(self) -> None:
        del self._stream.read


def _bounded(extensions: dict[str, Any]) -> _Bounded | None:
    stream = extensions.get("network_stream")
    if extensions.get("http_version") != b"HTTP/1.1" or not hasattr(stream, "__dict__"):
        return None
    return _Bounded(stream)


def can_drain(extensions: dict[str, Any], *, is_async: bool = False) -> bool:
    """Whether the reads of this response's body can be bounded."""
    return _bounded(extensions) is not None or (is_async and extensions.get("http_version") == b"HTTP/1.1")


def drain(chunks: Iterator[bytes], extensions: dict[str, Any]) -> bytes:
    """What follows the last event of a body. Any fault means: the connection is not reused."""
    bounded = _bounded(extensions)
    rest = bytearray()
    if bounded is None:
        return b""
    bounded.impose()
    try:
        for _ in range(ROUNDS):
            if (block := next(chunks, None)) is None:
                break
            rest += block
    except Exception:
        return bytes(rest)
    finally:
        bounded.lift()
    return bytes(rest)


async def adrain(chunks: AsyncIterator[bytes], extensions: dict[str, Any]) -> bytes:
    """`drain` for an async body."""
    bounded = _bounded(extensions)
    rest = bytearray()
    try:
        if bounded is not None:
            bounded.impose()
            await _to_the_end(chunks, rest)
        elif can_drain(extensions, is_async=True):
            async with asyncio.timeout(LIMIT):
                await _to_the_end(chunks, rest)
    except Exception:
        return bytes(rest)
    finally:
        if bounded is not None:
            bounded.lift()
    return bytes(rest)


async def _to_the_end(chunks: AsyncIterator[bytes], rest: bytearray) -> None:
    for _ in range(ROUNDS):
        if (block := await anext(chunks, None)) is None:
            return
        rest += block
