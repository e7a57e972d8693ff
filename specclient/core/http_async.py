"""The asynchronous HTTP transport."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast
from weakref import WeakKeyDictionary

import httpcore

from specclient.core.body import Body, ErrorBody
from specclient.core.chunked import ChunkJoiner
from specclient.core.exchange import DRAIN_BYTES, READ_BYTES, ReadingStopped
from specclient.core.http import FAULTS, MAX_REDIRECTS, core_request, redirected, response_headers, translated
from specclient.core.pools import Pools, Shard
from specclient.core.send import Connect, Send
from specclient.core.steady import Steady
from specclient.core.wire import Wire


class _AsyncStream(httpcore.AsyncNetworkStream):
    """The async twin of `_Stream`."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._head = b""
        self.joiner = ChunkJoiner()
        # The pool asks before each request whether the server hung up; anyio looks up five things for that.
        raw = inner.get_extra_info("socket")
        self._poll = select.poll() if raw is not None and hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(raw, select.POLLIN)

    async def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        if not isinstance(timeout, Wire):
            return await self._inner.read(max_bytes, timeout)
        if (rest := self.joiner.rest) is not None:
            self.joiner.rest = None
            return rest
        try:
            while data := await self._inner.read(max_bytes, timeout.read()):
                if joined := self.joiner.feed(data):
                    return joined
        except ssl.SSLError as error:  # anyio passes on an alert that comes after the handshake
            raise httpcore.ReadError(error) from error
        return data

    async def content(self, wire: Wire) -> bytes | None:
        """The body's next bytes; None where only the parser above can tell what comes."""
        try:
            while self.joiner.takes_content:
                if content := self.joiner.take(await self._inner.read(READ_BYTES, wire.read())):
                    return content
        except ssl.SSLError as error:
            raise httpcore.ReadError(error) from error
        return None

    async def write(self, buffer: bytes, timeout: Any = None) -> None:
        if not isinstance(timeout, Wire):
            return await self._inner.write(buffer, timeout)
        if timeout.joins_body:
            timeout.joins_body = False
            self._head = buffer
            self.joiner.reset()
            return None
        if buffer := self._head + buffer:
            self._head = b""
            try:
                await self._inner.write(buffer, timeout.write())
            except ssl.SSLError as error:
                raise httpcore.WriteError(error) from error
            timeout.timeline.sent()
        return None

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore.AsyncNetworkStream:
        seconds = timeout.connect() if isinstance(timeout, Wire) else timeout
        inner = await self._inner.start_tls(ssl_context, server_hostname, seconds)
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return _AsyncStream(inner)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._poll is not None:
            return bool(self._poll.poll(0))
        return self._inner.get_extra_info(info)


class _AsyncBackend(httpcore.AsyncNetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        seconds = timeout.connect() if isinstance(timeout, Wire) else timeout
        inner = await self._inner.connect_tcp(host, port, seconds, local_address, socket_options)
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return _AsyncStream(inner)


def _pool(**options: Any) -> httpcore.AsyncConnectionPool:
    return httpcore.AsyncConnectionPool(**options, network_backend=_AsyncBackend())


class _Loop:
    """The pools of one event loop for one transport, closed with whichever of the two goes first.

    A loop's connections die with it, noisily. A suspended async generator holds the pools, so that
    `loop.shutdown_asyncgens`, which `asyncio.run` calls, closes them while the loop still runs. When the
    transport is collected first, they are closed by a task of the loop.
    """

    def __init__(self, transport: AsyncHttpTransport, connect: Connect) -> None:
        self.pools = Pools(connect, _pool)
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

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._dropped.detach()
            for pool in self.pools.take():
                await pool.aclose()


def _close_later(running: weakref.ref[asyncio.AbstractEventLoop], held: _Loop) -> None:
    loop = running()
    if loop is not None and not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(held.close()))


async def _open(pools: Pools, send: Send, wire: Wire) -> AsyncHttpExchange:
    shard, gone = pools.acquire(send.url)
    try:
        for pool in gone:
            await Steady(pool.aclose())
        response = await Steady(shard.pool.handle_async_request(core_request(send, wire)))
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
        self._stream = stream if isinstance(stream, _AsyncStream) else None
        self._body: Body | None = None
        self._ended = False
        self._stopped = False

    async def read(self) -> list[Any] | None:
        if self._ended:
            return None
        if self._body is None:
            self._body = Body(
                self.headers, streamed=self.send.streamed, limit=self.send.max_bytes, wire=self.wire
            )
        if self._body.fault is not None:
            raise self._body.fault
        stream = self._stream
        try:
            block = None if stream is None else await stream.content(self.wire)
            if block is None:
                block = await anext(self._blocks, None)
                if stream is not None:
                    stream.joiner.parsing = False
        except FAULTS as error:
            if self._stopped:
                raise ReadingStopped from None
            raise translated(error, self.wire, self.send) from error
        if self._stopped:
            raise ReadingStopped
        if block is not None:
            return self._body.feed(block)
        self._ended = True
        return self._body.end()

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
        raw = None if self._stream is None else self._stream.get_extra_info("socket")
        if self._shard is not None and raw is not None:
            with suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)
