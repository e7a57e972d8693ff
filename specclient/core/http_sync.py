"""The synchronous HTTP transport."""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

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
from specclient.core.pool_calls import POOL_CALLS, closed_when_dropped
from specclient.core.pools import Pools, Shard
from specclient.core.send import Connect, Send
from specclient.core.stream_sync import Stream, pool
from specclient.core.wire import Wire


def _close(pools: Pools) -> None:
    with POOL_CALLS:
        for each in pools.take():
            each.close()


def _give_back(response: httpcore.Response, pools: Pools, shard: Shard) -> None:
    try:
        response.close()
    finally:
        pools.release(shard)


class HttpTransport:
    """Opens exchanges over pooled connections; safe from several threads."""

    def __init__(self, connect: Connect) -> None:
        self._pools = Pools(connect, pool)
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
                for each in gone:
                    each.close()
                response = shard.pool.handle_request(core_request(send, wire))
                stream = response.extensions.get("network_stream")
                if isinstance(stream, Stream) and not stream.asked:
                    stream.close()
                    response.close()
                    raise httpcore.RemoteProtocolError(UNASKED)
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
        self._stream = stream if isinstance(stream, Stream) else None
        self._body: Body | None = None
        self._known: Callable[[bytes], Piece | None] | None = None  # what may know the next read
        self._ended = False
        self._stopped = False
        self._closing = threading.RLock()

    def read(self) -> Sequence[Any] | None:
        known, stream = self._known, self._stream
        if known is None or stream is None:
            return self._read()
        try:
            data = stream.receive(self.wire)
        except FAULTS as error:
            raise self._broken(error) from error
        if self._stopped:
            raise ReadingStopped
        piece = known(data)
        return self._read(data) if piece is None else (piece,)

    def _read(self, data: bytes | None = None) -> list[Any] | None:
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
            came = None if stream is None else stream.content(self.wire, data)
            if came is None:
                with POOL_CALLS:
                    block = next(self._blocks, None)
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
