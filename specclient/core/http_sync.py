"""The synchronous HTTP transport."""

from __future__ import annotations

import socket
import ssl
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

import httpcore

from specclient.core.body import Body, ErrorBody
from specclient.core.chunked import ChunkJoiner
from specclient.core.exchange import DRAIN_BYTES, READ_BYTES, ReadingStopped
from specclient.core.http import FAULTS, MAX_REDIRECTS, core_request, redirected, response_headers, translated
from specclient.core.pool_calls import POOL_CALLS, closed_when_dropped
from specclient.core.pools import Pools, Shard
from specclient.core.send import Connect, Send
from specclient.core.wire import Wire


class _Stream(httpcore.NetworkStream):
    """A network stream that asks the attempt's `Wire` how long each operation may take.

    The head of a request waits for its body, so that both leave in one write and one packet.
    """

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._socket = _socket_of(inner)
        self._head = b""
        self.joiner = ChunkJoiner()

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        if not isinstance(timeout, Wire):
            return self._inner.read(max_bytes, timeout)
        if (rest := self.joiner.rest) is not None:
            self.joiner.rest = None
            return rest
        while data := self._inner.read(max_bytes, timeout.read()):
            if joined := self.joiner.feed(data):
                return joined
        return data

    def content(self, wire: Wire) -> bytes | None:
        """The body's next bytes; None where only the parser above can tell what comes."""
        joiner = self.joiner
        while joiner.takes_content:
            if content := joiner.take(self._receive(wire)):
                return content
        return None

    def _receive(self, wire: Wire) -> bytes:
        """`_inner.read` without its layers: chunks come one by one, and each would pay for them.

        To set a socket's limit is a system call. One that is a little shorter than the time left is
        therefore left as it is, and what then remains is waited for in a further turn.
        """
        connection = self._socket
        if connection is None:
            return self._inner.read(READ_BYTES, wire.read())
        while True:
            left, limit = wire.read(), connection.gettimeout()
            try:
                if left is None or left < 1:
                    connection.settimeout(left)
                elif limit is None or not 0.8 * left <= limit <= left:
                    connection.settimeout(0.9 * left)
                return connection.recv(READ_BYTES)
            except OSError as error:
                if not isinstance(error, TimeoutError) or error.errno is not None:  # the network's own
                    raise httpcore.ReadError(error) from error

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        if not isinstance(timeout, Wire):
            return self._inner.write(buffer, timeout)
        if timeout.joins_body:
            timeout.joins_body = False
            self._head = buffer
            self.joiner.reset()
            return None
        if buffer := self._head + buffer:
            self._head = b""
            self._inner.write(buffer, timeout.write())
            timeout.timeline.sent()
        return None

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore.NetworkStream:
        seconds = timeout.connect() if isinstance(timeout, Wire) else timeout
        inner = self._inner.start_tls(ssl_context, server_hostname, seconds)
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return _Stream(inner)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _socket_of(stream: httpcore.NetworkStream) -> socket.socket | None:
    """The socket whose bytes are the stream's own; None where TLS runs inside TLS (a proxy's)."""
    if isinstance(stream.get_extra_info("ssl_object"), ssl.SSLObject):  # a socket's own is none of these
        return None
    found = stream.get_extra_info("socket")
    return found if isinstance(found, socket.socket) else None


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = timeout.connect() if isinstance(timeout, Wire) else timeout
        inner = self._inner.connect_tcp(host, port, seconds, local_address, socket_options)
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return _Stream(inner)


def _pool(**options: Any) -> httpcore.ConnectionPool:
    return httpcore.ConnectionPool(**options, network_backend=_Backend())


def _close(pools: Pools) -> None:
    with POOL_CALLS:
        for pool in pools.take():
            pool.close()


def _give_back(response: httpcore.Response, pools: Pools, shard: Shard) -> None:
    try:
        response.close()
    finally:
        pools.release(shard)


class HttpTransport:
    """Opens exchanges over pooled connections; safe from several threads."""

    def __init__(self, connect: Connect) -> None:
        self._pools = Pools(connect, _pool)
        weakref.finalize(self, POOL_CALLS.dropped, partial(_close, self._pools))

    def open(self, send: Send, wire: Wire) -> HttpExchange:
        """Send the request and wait for the response's headers, whatever the status."""
        try:
            for _ in range(MAX_REDIRECTS):
                exchange = self._open(send, wire)
                following = redirected(send, exchange.status, exchange.headers)
                if following is None:
                    break
                exchange.close()
                send = following
        except FAULTS as error:
            raise translated(error, wire, send) from error
        wire.got_headers = True
        return exchange

    def _open(self, send: Send, wire: Wire) -> HttpExchange:
        with POOL_CALLS:
            shard, gone = self._pools.acquire(send.url)
            try:
                for pool in gone:
                    pool.close()
                response = shard.pool.handle_request(core_request(send, wire))
            except BaseException:
                self._pools.release(shard)
                raise
            return HttpExchange(response, send, wire, self._pools, shard)

    def close(self) -> None:
        _close(self._pools)


class HttpExchange:
    """See `exchange.Exchange`."""

    def __init__(
        self, response: httpcore.Response, send: Send, wire: Wire, pools: Pools, shard: Shard
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response_headers(response.headers)
        self.send = send
        self.wire = wire
        self.stats: Any = None
        self._blocks = iter(cast(Iterable[bytes], response.stream))
        close = partial(_give_back, response, pools, shard)
        self._dropped = closed_when_dropped(self, close, self._blocks)
        stream = response.extensions.get("network_stream")
        self._stream = stream if isinstance(stream, _Stream) else None
        self._body: Body | None = None
        self._ended = False
        self._stopped = False
        self._closing = threading.RLock()

    def read(self) -> list[Any] | None:
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
            block = None if stream is None else stream.content(self.wire)
            if block is None:
                with POOL_CALLS:
                    block = next(self._blocks, None)
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

    def read_text(self) -> str:
        body = ErrorBody(self.headers, self.wire)
        self.wire.finished()  # the status is known: its reason is not waited for long
        try:
            with POOL_CALLS:
                for block in self._blocks:
                    body.feed(block)
                    if body.full:
                        break
        except FAULTS:
            pass  # what came of the reason will do
        return body.text()

    def drain(self) -> None:
        if not POOL_CALLS.busy:
            self.wire.drain()
            left = DRAIN_BYTES
            try:
                with POOL_CALLS:
                    for block in self._blocks:
                        left -= len(block)
                        if left < 0:
                            break
            except FAULTS:
                pass  # the answer is complete; only this connection is lost
        self.close()

    def close(self) -> None:
        with self._closing:
            self._dropped()

    def stop(self) -> None:
        self._stopped = True
        raw = None if self._stream is None else self._stream.get_extra_info("socket")
        with self._closing:  # afterwards the connection may be another call's
            if self._dropped.alive and isinstance(raw, socket.socket):
                with suppress(OSError):
                    socket.socket.shutdown(raw, socket.SHUT_RDWR)  # TLS's own would take its state away
