"""The network below the synchronous transport: what a connection's bytes pass through."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any

import httpcore

from specclient.core.chunked import ChunkJoiner
from specclient.core.exchange import READ_BYTES
from specclient.core.stamps import NANOSECONDS
from specclient.core.wire import Wire


class Stream(httpcore.NetworkStream):
    """A network stream that asks the attempt's `Wire` how long each operation may take.

    The head of a request waits for its body, so that both leave in one write and one packet.
    """

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._socket = _socket_of(inner)
        self._spare = 0
        """Nanoseconds by which `content_idle` is longer than the socket's limit; 0: not known."""
        self._head = b""
        self.joiner = ChunkJoiner()
        self.asked = True
        """Whether anything was read since the last request with a body: no answer comes before it."""

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        if not isinstance(timeout, Wire):
            return self._inner.read(max_bytes, timeout)
        if (rest := self.joiner.rest) is not None:
            self.joiner.rest = None
            return rest
        self._spare = 0
        self.asked = True
        while data := self._inner.read(max_bytes, timeout.read_waiting(self._waiting)):
            if joined := self.joiner.feed(data):
                return joined
        return data

    def content(self, wire: Wire, data: bytes | None = None) -> tuple[bytes, bytes] | None:
        """The next bytes of the body and the last read, begun with `data` if that was read.

        None where only the parser above can tell what comes.
        """
        joiner = self.joiner
        while joiner.takes_content:
            if data is None:
                data = self._receive(wire)
            if content := joiner.take(data):
                return content, data
            data = None
        return None

    def receive(self, wire: Wire) -> bytes:
        """The next read while content comes and `wire.only_idle` holds."""
        last, connection = wire.timeline.attempt.last_content, self._socket
        if last is not None and connection is not None and perf_counter_ns() - last < self._spare:
            try:
                return connection.recv(READ_BYTES)
            except OSError as error:
                if not _is_timeout(error):
                    raise httpcore.ReadError(error) from error
        data = self._receive(wire)
        idle, limit = wire.timeout.content_idle, None if connection is None else connection.gettimeout()
        self._spare = 0 if idle is None or limit is None else int((idle - limit) * NANOSECONDS)
        return data

    def _waiting(self) -> bool:
        held = self._inner.get_extra_info("ssl_object")
        pending = isinstance(held, ssl.SSLSocket | ssl.SSLObject) and held.pending() > 0
        return pending or bool(self._inner.get_extra_info("is_readable"))

    def _receive(self, wire: Wire) -> bytes:
        """`_inner.read` without its layers: chunks come one by one, and each would pay for them.

        To set a socket's limit is a system call. One that is a little shorter than the time left is
        therefore left as it is, and what then remains is waited for in a further turn.
        """
        connection = self._socket
        if connection is None:
            return self._inner.read(READ_BYTES, wire.read_waiting(self._waiting))
        while True:
            left, limit = wire.read_waiting(self._waiting), connection.gettimeout()
            try:
                if left is None or left < 1:
                    connection.settimeout(left)
                elif limit is None or not 0.8 * left <= limit <= left:
                    connection.settimeout(0.9 * left)
                return connection.recv(READ_BYTES)
            except OSError as error:
                if not _is_timeout(error):
                    raise httpcore.ReadError(error) from error

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        if not isinstance(timeout, Wire):
            return self._inner.write(buffer, timeout)
        if timeout.joins_body:
            timeout.joins_body = self.asked = False
            self._head = buffer
            self._spare = 0
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
        return Stream(inner)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _is_timeout(error: OSError) -> bool:
    """Whether the socket's own limit was reached; the network's has a number."""
    return isinstance(error, TimeoutError) and error.errno is None


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
        try:
            inner = self._inner.connect_tcp(host, port, seconds, local_address, socket_options)
        except UnicodeError as error:  # no host's name
            raise httpcore.ConnectError(error) from error
        if isinstance(timeout, Wire):
            timeout.timeline.connected()
        return Stream(inner)


def pool(**options: Any) -> httpcore.ConnectionPool:
    """A pool whose connections ask the attempt's `Wire` for their limits."""
    return httpcore.ConnectionPool(**options, network_backend=_Backend())
