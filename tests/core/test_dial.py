"""Connecting: which address is taken, and that no socket is left behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from specclient.core import dial


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def address(port: int, family: Any = socket.AF_INET) -> dial.Address:
    return family, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        port: int = made.getsockname()[1]
    return port


def found(monkeypatch: pytest.MonkeyPatch, *addresses: dial.Address) -> None:
    async def several(host: str, port: int) -> Any:
        return addresses

    monkeypatch.setattr(dial, "_addresses", several)


def test_a_name_and_a_literal_address(listener: socket.socket) -> None:
    async def peer(host: str) -> Any:
        with await dial.dialled(host, listener.getsockname()[1]) as connected:
            return connected.getpeername()

    for host in ("127.0.0.1", "localhost"):
        assert asyncio.run(peer(host)) == listener.getsockname()


def test_the_next_address_where_one_refuses(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    port = listener.getsockname()[1]
    found(monkeypatch, address(closed_port()), address(port))

    async def peer() -> Any:
        with await dial.dialled("host", 1) as connected:
            return connected.getpeername()

    assert asyncio.run(peer()) == listener.getsockname()


def test_every_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = closed_port(), closed_port()
    found(monkeypatch, *map(address, ports))
    with pytest.raises(OSError, match=f"{ports[0]}.*; .*{ports[1]}"):
        asyncio.run(dial.dialled("host", 1))


def test_families_take_turns() -> None:
    six, four = socket.AF_INET6, socket.AF_INET
    said = [address(1, six), address(2, six), address(3, six), address(4, four)]
    assert [each[4][1] for each in dial._alternating(said)] == [1, 4, 2, 3]


class Peers:
    """Stands for connecting: port 1 never answers, port 2 does once `go` is set, port 3 at once."""

    def __init__(self) -> None:
        self.made: list[socket.socket] = []
        self.go = asyncio.Event()
        self.given_up = 0

    async def connected(self, to: dial.Address, local_address: str | None) -> socket.socket:
        port = to[4][1]
        try:
            await (asyncio.sleep(60) if port == 1 else self.go.wait() if port == 2 else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        self.made.append(socket.socket())
        return self.made[-1]


def test_a_silent_address_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "NEXT_SECONDS", 0.01)
    found(monkeypatch, address(1), address(3))

    async def run() -> None:
        peers = Peers()
        monkeypatch.setattr(dial, "_connected", peers.connected)
        with await dial.dialled("host", 1) as connected:
            assert connected is peers.made[0]
        await asyncio.sleep(0)
        assert peers.given_up == 1

    asyncio.run(run())


def test_a_second_winner_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "NEXT_SECONDS", 0.01)
    found(monkeypatch, address(2), address(2))

    async def run() -> None:
        peers = Peers()
        monkeypatch.setattr(dial, "_connected", peers.connected)
        asyncio.get_running_loop().call_later(0.1, peers.go.set)
        with await dial.dialled("host", 1) as connected:
            await asyncio.sleep(0)
            assert [each.fileno() == -1 for each in peers.made if each is not connected] == [True]

    asyncio.run(run())


@pytest.mark.parametrize("steps", range(6))
def test_cancelled_as_it_wins(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    found(monkeypatch, address(2), address(1))

    async def run() -> None:
        peers = Peers()
        monkeypatch.setattr(dial, "_connected", peers.connected)
        dialling = asyncio.create_task(dial.dialled("host", 1))
        await asyncio.sleep(0.01)
        peers.go.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        dialling.cancel()
        await asyncio.wait([dialling])
        if not dialling.cancelled():
            dialling.result().close()
        for _ in range(3):
            await asyncio.sleep(0)
        assert all(each.fileno() == -1 for each in peers.made)

    asyncio.run(run())
