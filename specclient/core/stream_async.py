"""The network below the asynchronous transport, the twin of `stream_sync.py`."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any

import httpcore

from specclient.core.chunked import ChunkJoiner
from specclient.core.pipe import Pipe
from specclient.core.stamps import NANOSECONDS
from specclient.core.wire import Wire

_NAMES = {"client_addr": "sockname", "server_addr": "peername"}


class AsyncStream(httpcore.AsyncNetworkStream):
    """The async twin of `Stream`."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._head = b""
        self.joiner = ChunkJoiner()
        self.asked = True
        """See `Stream.asked`."""

    async def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        if not isinstance(timeout, Wire):
            return await self._read(max_bytes, timeout)
        if (rest := self.joiner.rest) is not None:
            self.joiner.rest = None
            return rest
        self.asked = True
        while data := await self._read(max_bytes, timeout.read_waiting(self._waiting)):
            if joined := self.joiner.feed(data):
                return joined
        return data

    def _waiting(self) -> bool:
        return self.pipe.readable

    async def _read(self, max_bytes: int, seconds: float | None) -> bytes:
        return await self.pipe.read(_until(seconds), max_bytes)

    async def content(self, wire: Wire, data: bytes | None = None) -> tuple[bytes, bytes] | None:
        """See `Stream.content`."""
        joiner = self.joiner
        while joiner.takes_content:
            if data is None:
                data = await self.pipe.read(_until(wire.read_waiting(self._waiting)))
            if content := joiner.take(data):
                return content, data
            data = None
        return None

    async def write(self, buffer: bytes, timeout: Any = None) -> None:
        if not isinstance(timeout, Wire):
            return await self.pipe.write(buffer, timeout)
        if timeout.joins_body:
            timeout.joins_body = self.asked = False
            self._head = buffer
            self.joiner.reset()
            return None
        if buffer := self._head + buffer:
            self._head = b""
            await self.pipe.write(buffer, timeout.write())
            timeout.timeline.sent()
        return None

    async def aclose(self) -> None:
        await self.pipe.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore.AsyncNetworkStream:
        seconds = timeout.connect() if isinstance(timeout, Wire) else timeout
        await self.pipe.start_tls(ssl_context, server_hostname, seconds)
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return AsyncStream(self.pipe)

    def get_extra_info(self, info: str) -> Any:
        return self.pipe.readable if info == "is_readable" else self.pipe.info(_NAMES.get(info, info))


def _until(seconds: float | None) -> int | None:
    return None if seconds is None else perf_counter_ns() + int(seconds * NANOSECONDS)


class _AsyncBackend(httpcore.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        seconds = timeout.connect() if isinstance(timeout, Wire) else timeout
        pipe = await Pipe.connect(host, port, seconds, local_address, socket_options or ())
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return AsyncStream(pipe)


def pool(**options: Any) -> httpcore.AsyncConnectionPool:
    """A pool whose connections ask the attempt's `Wire` for their limits."""
    return httpcore.AsyncConnectionPool(**options, network_backend=_AsyncBackend())
