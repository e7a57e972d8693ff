"""A connection of an event loop: limits, order, and that little is held."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from time import perf_counter_ns

import httpcore
import pytest

from specclient.core.pipe import Pipe
from specclient.core.stream_async import AsyncStream

Peer = Callable[[socket.socket], None]


def against(peer: Peer, ask: Callable[[Pipe], Awaitable[None]]) -> None:
    """`ask` on a pipe whose other end is `peer`'s, in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as other:
                peer(other)

        thread = threading.Thread(target=serve)
        thread.start()

        async def run() -> None:
            pipe = await Pipe.connect("127.0.0.1", listener.getsockname()[1], 5, None, ())
            try:
                await ask(pipe)
            finally:
                await pipe.close()

        asyncio.run(run())
        thread.join()


def until(seconds: float) -> int:
    return perf_counter_ns() + int(seconds * 1e9)


def reset(other: socket.socket) -> None:
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_each_wait_has_its_own_limit() -> None:
    """The timer of an earlier wait, longer or shorter, does not stand for a later one."""

    def peer(other: socket.socket) -> None:
        while other.recv(1):
            other.send(b"x")

    async def ask(pipe: Pipe) -> None:
        for limit in (5.0, 0.2, None, 0.3, 5.0):
            await pipe.write(b"?", 5)
            assert await pipe.read(None if limit is None else until(limit)) == b"x"
        for limit in (0.05, 0.3):
            began = perf_counter_ns()
            with pytest.raises(httpcore.ReadTimeout):
                await pipe.read(until(limit))
            assert limit <= (perf_counter_ns() - began) / 1e9 < limit + 1
        await pipe.write(b"?", 5)
        assert await pipe.read(until(5)) == b"x", "a limit that was reached costs no byte"

    against(peer, ask)


def test_a_cancelled_wait_loses_nothing() -> None:
    def peer(other: socket.socket) -> None:
        other.recv(1)
        other.send(b"late")
        other.recv(1)

    async def ask(pipe: Pipe) -> None:
        waiting = asyncio.create_task(pipe.read(None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await pipe.write(b"?", 5)
        assert await pipe.read(until(5)) == b"late"

    against(peer, ask)


def test_what_came_before_a_fault_is_given_first() -> None:
    def peer(other: socket.socket) -> None:
        other.send(b"last words")
        other.recv(1)
        reset(other)

    async def ask(pipe: Pipe) -> None:
        stream = AsyncStream(pipe)
        assert await stream.read(4, 5) == b"last"
        await pipe.write(b"!", 5)
        while pipe.readable and not pipe._ended:
            await asyncio.sleep(0.01)
        assert await stream.read(100, 5) == b" words"
        with pytest.raises(httpcore.ReadError):
            await stream.read(100, 5)
        with pytest.raises(httpcore.WriteError):
            await stream.write(b"?", 5)

    against(peer, ask)


def test_the_end_is_empty_and_stays() -> None:
    async def ask(pipe: Pipe) -> None:
        assert [await pipe.read(until(5)), await pipe.read(until(5))] == [b"", b""]
        assert pipe.readable

    against(lambda _: None, ask)


def test_what_nobody_reads_is_not_held() -> None:
    size = 32 * 2**20

    def peer(other: socket.socket) -> None:
        other.sendall(b"x" * size)

    async def ask(pipe: Pipe) -> None:
        await asyncio.sleep(0.3)
        assert sum(map(len, pipe._pieces)) <= 2**20
        came = 0
        while data := await pipe.read(until(5)):
            came += len(data)
            assert sum(map(len, pipe._pieces)) <= 2**20
        assert came == size

    against(peer, ask)


def test_a_slow_reader_of_small_pieces_holds_little() -> None:
    """What a read leaves over is taken before more is let in."""
    size = 16 * 2**20

    def peer(other: socket.socket) -> None:
        other.sendall(b"x" * size)

    async def ask(pipe: Pipe) -> None:
        stream = AsyncStream(pipe)
        came = 0
        while data := await stream.read(65536, 5):
            came += len(data)
            await asyncio.sleep(0.001)
            assert sum(map(len, pipe._pieces)) <= 2**20
        assert came == size

    against(peer, ask)


def test_an_early_answer_to_what_is_still_being_sent() -> None:
    def peer(other: socket.socket) -> None:
        other.recv(1)
        other.sendall(b"too large")
        reset(other)

    async def ask(pipe: Pipe) -> None:
        with pytest.raises(httpcore.WriteError):
            await pipe.write(b"x" * 64 * 2**20, 5)
        assert await pipe.read(until(5)) == b"too large"

    against(peer, ask)


def test_a_peer_that_does_not_read() -> None:
    stay = threading.Event()

    def peer(_: socket.socket) -> None:
        stay.wait(10)

    async def ask(pipe: Pipe) -> None:
        with pytest.raises(httpcore.WriteTimeout):
            await pipe.write(b"x" * 64 * 2**20, 0.2)
        stay.set()

    against(peer, ask)


def test_closed_while_read() -> None:
    stay = threading.Event()

    def peer(_: socket.socket) -> None:
        stay.wait(10)

    async def ask(pipe: Pipe) -> None:
        reading = asyncio.create_task(pipe.read(None))
        await asyncio.sleep(0)
        await pipe.close()
        with pytest.raises(httpcore.ReadError):
            await reading
        stay.set()

    against(peer, ask)
