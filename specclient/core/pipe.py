"""One connection of an event loop: bytes in, bytes out, each wait with a limit of its own.

The loop reads as bytes come, so that a wait for them is one future: to have the loop look for bytes and
leave off at each wait, as anyio does, takes longer than all that is done with a token. What is not taken
stays small: the loop leaves off while two reads of it are held.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any

import httpcore

from specclient.core.dial import dialled
from specclient.core.stamps import NANOSECONDS

_NEVER_SECONDS = 1e8
"""For a limit of asyncio's own that cannot be left out; ours is the one that counts."""
_NEVER = 1 << 62
_TLS_BYTES = 256 * 1024
"""What is encrypted at once: of the last such piece alone TLS does not tell when the network has it."""


class Pipe(asyncio.Protocol):
    """What has come of one connection, and whether it goes on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._base: Any = None
        """The transport below any TLS."""
        self._secured = False
        self._poll: Any = None
        self._pieces: deque[bytes] = deque()
        self._paused = False
        self._ended = False
        self._lost: BaseException | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._sent: asyncio.Future[None] | None = None
        self._until = self._rings = 0  # when the wait for bytes is over, and when the timer looks
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def connect(
        cls, host: str, port: int, seconds: float | None, local_address: str | None, options: Iterable[Any]
    ) -> Pipe:
        """A pipe to the host. Raises httpcore's ConnectTimeout and ConnectError."""
        try:
            async with asyncio.timeout(seconds):
                connected = await dialled(host, port, local_address)
                loop = asyncio.get_running_loop()
                transport, pipe = await loop.create_connection(cls, sock=connected)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(error) from error
        except (OSError, UnicodeError) as error:  # the latter of what is no host's name
            raise httpcore.ConnectError(error) from error
        for option in options:
            transport.get_extra_info("socket").setsockopt(*option)
        return pipe

    async def start_tls(self, context: ssl.SSLContext, hostname: str | None, seconds: float | None) -> None:
        """Everything from here on is encrypted. Raises httpcore's ConnectTimeout and ConnectError."""
        self._secured = True
        try:
            async with asyncio.timeout(seconds):
                transport = await self._loop.start_tls(
                    self._transport,
                    self,
                    context,
                    server_hostname=hostname,
                    ssl_handshake_timeout=_NEVER_SECONDS,
                )
        except TimeoutError as error:
            await self.close()
            raise httpcore.ConnectTimeout(error) from error
        except OSError as error:
            await self.close()
            raise httpcore.ConnectError(error) from error
        if transport is None:  # asyncio's way to say that the connection went away meanwhile
            raise httpcore.ConnectError("the connection was closed")
        self.connection_made(transport)

    # What the loop says

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if self._base is None:
            self._base = transport
        # Sent is what the network has. Under TLS a limit of 0 would be reached by an empty buffer.
        transport.set_write_buffer_limits(high=1 if self._secured else 0, low=0)
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket"), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        held = self._pieces
        held.append(data if type(data) is bytes else bytes(data))  # Windows' loop gives a bytearray
        arrival = self._arrival
        if arrival is not None and not arrival.done():
            arrival.set_result(None)
        elif len(held) > 1 and not self._paused:
            self._paused = True
            # Not TLS's own: uvloop's throws away what it holds back where the connection ends meanwhile.
            self._base.pause_reading()

    def eof_received(self) -> bool:
        self._ended = True
        self._arrived()
        return not self._secured  # what is being sent may still be sent; TLS has no such half

    def connection_lost(self, exc: BaseException | None) -> None:
        self._ended = True
        self._lost = exc or self._lost
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._arrived()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._sent = self._loop.create_future()

    def resume_writing(self) -> None:
        sent, self._sent = self._sent, None
        if sent is not None and not sent.done():
            sent.set_result(None)

    def _arrived(self) -> None:
        arrival = self._arrival
        if arrival is not None and not arrival.done():
            arrival.set_result(None)

    # What the connection's user asks for

    async def read(self, until: int | None, most: int | None = None) -> bytes:
        """What came, at most so many bytes of it, waited for until then (on `time.perf_counter_ns`).

        Empty at the end. Raises httpcore's ReadTimeout and ReadError.
        """
        if not (self._pieces or self._ended):
            self._until = _NEVER if until is None else until
            if self._timer is None or self._until < self._rings:
                self._ring_at_limit()
            self._arrival = asyncio.Future(loop=self._loop)
            try:
                await self._arrival
            finally:
                self._arrival = None
        return self._take(most)

    def _ring_at_limit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings = self._until
        self._timer = self._loop.call_later((self._until - perf_counter_ns()) / NANOSECONDS, self._ring)

    def _ring(self) -> None:
        """A timer is set once for many waits: most of them are over long before, and the last one tells."""
        self._timer, arrival = None, self._arrival
        if arrival is None or arrival.done():
            return
        if perf_counter_ns() < self._until:
            self._ring_at_limit()
        else:
            arrival.set_exception(httpcore.ReadTimeout())

    def _take(self, most: int | None) -> bytes:
        pieces = self._pieces
        if not pieces:
            if self._lost is not None or (self._transport.is_closing() and not self._secured):
                raise httpcore.ReadError(self._lost or "the connection was closed") from self._lost
            return b""
        data = pieces.popleft()
        if most is not None and len(data) > most:
            pieces.appendleft(data[most:])
            data = data[:most]
        elif pieces and most is None:
            data = b"".join((data, *pieces))
            pieces.clear()
        if self._paused and not pieces:
            self._paused = False
            self._base.resume_reading()
        return data

    async def write(self, data: bytes, seconds: float | None) -> None:
        """Send all of it. Raises httpcore's WriteTimeout and WriteError."""
        until = None if seconds is None else self._loop.time() + seconds
        step = _TLS_BYTES if self._secured else len(data)
        for begin in range(0, len(data), step or 1):
            for _ in range(2 if begin else 0):  # an early answer is read before a write can fail behind it
                await asyncio.sleep(0)
            self._check_writable()
            self._transport.write(data[begin : begin + step])
            if self._sent is not None:
                try:
                    async with asyncio.timeout_at(until):
                        await self._sent
                except TimeoutError as error:
                    raise httpcore.WriteTimeout(error) from error
                self._check_writable()

    def _check_writable(self) -> None:
        """Behind the peer's end TLS has no half that is open, though asyncio's takes what is written."""
        closed = self._transport.is_closing() or self._base.is_closing() or (self._secured and self._ended)
        if closed or self._lost is not None:
            raise httpcore.WriteError(self._lost or "the connection was closed") from self._lost

    def abort(self) -> None:
        """Drop the connection, whatever is under way: who reads is then at its end."""
        self._transport.abort()

    async def close(self) -> None:
        """The same, and see it happen."""
        self._transport.abort()
        await asyncio.sleep(0)

    @property
    def readable(self) -> bool:
        """Whether bytes or the end have come, seen by the loop or not."""
        return bool(self._pieces or self._ended or self._transport.is_closing()) or bool(
            self._poll is not None and self._poll.poll(0)
        )

    def info(self, name: str) -> Any:
        """What asyncio knows of the transport under this name."""
        return self._transport.get_extra_info(name)
