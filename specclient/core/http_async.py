"""The asynchronous HTTP transport."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, cast
from weakref import WeakKeyDictionary

import httpcore

from specclient.core.alike import Piece
from specclient.core.body import Body, ErrorBody
from specclient.core.exchange import DRAIN_BYTES, ReadingStopped
from specclient.core.http import (
    FAULTS,
    MAX_REDIRECTS,
    UNASKED,
    core_request,
    redirected,
    response_headers,
    translated,
)
from specclient.core.pools import Pools, Shard
from specclient.core.send import Connect, Send
from specclient.core.stamps import NANOSECONDS
from specclient.core.steady import Steady
from specclient.core.stream_async import AsyncStream, pool
from specclient.core.wire import Wire


class _Loop:
    """The pools of one event loop for one transport, closed with whichever of the two goes first.

    A loop's connections die with it, noisily. A suspended async generator holds the pools, so that
    `loop.shutdown_asyncgens`, which `asyncio.run` calls, closes them while the loop still runs. When the
    transport is collected first, they are closed by a task of the loop.
    """

    def __init__(self, transport: AsyncHttpTransport, connect: Connect) -> None:
        self.pools = Pools(connect, pool)
        running = weakref.ref(asyncio.get_running_loop())
        self._dropped = weakref.finalize(transport, _close_later, running, self)
        self._dropped.atexit = False
        self._keeper: AsyncGenerator[None, None] | None = None

    async def start(self) -> None:
        if self._keeper is None:
            self._keeper = self._keep()
            await self._keeper.__anext__()

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.aclose()

    def forget(self) -> None:
        """The loop was closed before its connections, which nothing but the collector can close now."""
        self._dropped.detach()

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._dropped.detach()
            for each in self.pools.take():
                await each.aclose()


def _close_later(running: weakref.ref[asyncio.AbstractEventLoop], held: _Loop) -> None:
    loop = running()
    if loop is not None and not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(held.close()))


async def _open(pools: Pools, send: Send, wire: Wire) -> AsyncHttpExchange:
    shard, gone = pools.acquire(send.url)
    try:
        for each in gone:
            await Steady(each.aclose())
        response = await Steady(shard.pool.handle_async_request(core_request(send, wire)))
        stream = response.extensions.get("network_stream")
        if isinstance(stream, AsyncStream) and not stream.asked:
            stream.pipe.abort()
            await Steady(response.aclose())
            raise httpcore.RemoteProtocolError(UNASKED)
    except BaseException:
        pools.release(shard)
        raise
    return AsyncHttpExchange(response, send, wire, pools, shard)


class AsyncHttpTransport:
    """The async twin of `HttpTransport`. Each event loop has connections of its own."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()
        self._lock = threading.Lock()

    async def open(self, send: Send, wire: Wire) -> AsyncHttpExchange:
        """Send the request and wait for the response's headers, whatever the status."""
        loop = self._loop()
        await loop.start()
        try:
            for _ in range(MAX_REDIRECTS):
                exchange = await _open(loop.pools, send, wire)
                following = redirected(send, exchange.status, exchange.headers)
                if following is None:
                    break
                await exchange.close()
                send = following
        except FAULTS as error:
            raise translated(error, wire, send) from error
        wire.got_headers = True
        return exchange

    def _loop(self) -> _Loop:
        running = asyncio.get_running_loop()
        with self._lock:
            if running not in self._loops:
                for gone in [each for each in self._loops if each.is_closed()]:
                    self._loops.pop(gone).forget()
                self._loops[running] = _Loop(self, self._connect)
            return self._loops[running]

    async def close(self) -> None:
        """Close this loop's connections. Those of another loop close when it does."""
        with self._lock:
            loop = self._loops.pop(asyncio.get_running_loop(), None)
        if loop is not None:
            await loop.close()


class AsyncHttpExchange:
    """See `exchange.AsyncExchange`."""

    def __init__(
        self, response: httpcore.Response, send: Send, wire: Wire, pools: Pools, shard: Shard
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response_headers(response.headers)
        self.send = send
        self.wire = wire
        self.stats: Any = None
        self._response = response
        self._pools = pools
        self._shard: Shard | None = shard
        self._blocks = aiter(cast(AsyncIterable[bytes], response.stream))
        stream = response.extensions.get("network_stream")
        self._stream = stream if isinstance(stream, AsyncStream) else None
        self._body: Body | None = None
        self._known: Callable[[bytes], Piece | None] | None = None  # what may know the next read
        idle = wire.timeout.content_idle
        self._idle = 1 << 62 if idle is None else int(idle * NANOSECONDS)
        self._ended = False
        self._stopped = False

    async def read(self) -> Sequence[Any] | None:
        known, stream, last = self._known, self._stream, self.wire.timeline.attempt.last_content
        if known is None or stream is None or last is None or perf_counter_ns() - last >= self._idle:
            return await self._read()
        try:
            data = await stream.pipe.read(last + self._idle)
        except httpcore.ReadTimeout:
            return await self._read()
        except FAULTS as error:
            raise self._broken(error) from error
        if self._stopped:
            raise ReadingStopped
        piece = known(data)
        return await self._read(data) if piece is None else (piece,)

    async def _read(self, data: bytes | None = None) -> list[Any] | None:
        """`read` of anything; `data` was received already."""
        if self._ended:
            return None
        if self._body is None:
            self._body = Body(
                self.headers, streamed=self.send.streamed, limit=self.send.max_bytes, wire=self.wire
            )
        if self._body.fault is not None:
            raise self._body.fault
        stream, block, self._known = self._stream, None, None
        try:
            came = None if stream is None else await stream.content(self.wire, data)
            if came is None:
                block = await anext(self._blocks, None)
                if stream is not None:
                    stream.joiner.parsing = False
        except FAULTS as error:
            raise self._broken(error) from error
        if self._stopped:
            raise ReadingStopped
        if came is not None:
            block, data = came
            objects = self._body.feed(block)
            if self.wire.only_idle:
                self._known = self._body.lone(data, block, objects)
            return objects
        if block is not None:
            return self._body.feed(block)
        self._ended = True
        return self._body.end()

    def _broken(self, error: Exception) -> BaseException:
        return ReadingStopped() if self._stopped else translated(error, self.wire, self.send)

    async def read_text(self) -> str:
        body = ErrorBody(self.headers, self.wire)
        self.wire.finished()  # the status is known: its reason is not waited for long
        try:
            async for block in self._blocks:
                body.feed(block)
                if body.full:
                    break
        except FAULTS:
            pass  # what came of the reason will do
        return body.text()

    async def drain(self) -> None:
        self.wire.drain()
        left = DRAIN_BYTES
        try:
            async for block in self._blocks:
                left -= len(block)
                if left < 0:
                    break
        except FAULTS:
            pass  # the answer is complete; only this connection is lost
        await self.close()

    async def close(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            try:
                await Steady(self._response.aclose())
            finally:
                self._pools.release(shard)

    def stop(self) -> None:
        self._stopped = True
        if self._shard is not None and self._stream is not None:
            self._stream.pipe.abort()
