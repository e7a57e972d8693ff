"""Connecting a socket in an event loop, so that whatever interrupts it leaves no socket behind.

asyncio's own race over the addresses of a host loses the winner where the caller is cancelled as it wins.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any

NEXT_SECONDS = 0.25
"""How long one address of a host has before the next one is tried beside it (RFC 8305)."""

Address = tuple[Any, Any, int, str, Any]
"""As `socket.getaddrinfo` gives it."""


async def dialled(host: str, port: int, local_address: str | None = None) -> socket.socket:
    """A connected socket, not blocking. Raises OSError."""
    addresses = _alternating(await _addresses(host, port))
    if len(addresses) == 1:
        return await _connected(addresses[0], local_address)
    return await _raced(addresses, local_address)


async def _addresses(host: str, port: int) -> Sequence[Address]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:  # a name, which has to be asked for
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _alternating(addresses: Iterable[Address]) -> list[Address]:
    """One family's address after the other's, the system's first choice first."""
    families: dict[Any, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    return [each for each in chain(*zip_longest(*families.values())) if each is not None]


async def _connected(address: Address, local_address: str | None) -> socket.socket:
    family, kind, protocol, _, target = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        if local_address is not None:
            made.bind((local_address, 0))
        await asyncio.get_running_loop().sock_connect(made, target)
    except BaseException:
        made.close()
        raise
    return made


async def _raced(addresses: Sequence[Address], local_address: str | None) -> socket.socket:
    tries: set[asyncio.Task[socket.socket]] = set()
    failed: list[BaseException] = []
    waiting = list(addresses)
    try:
        while tries or waiting:
            if waiting:
                tries.add(asyncio.create_task(_connected(waiting.pop(0), local_address)))
            limit = NEXT_SECONDS if waiting else None
            done, _ = await asyncio.wait(tries, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                tries.discard(each)
                if (error := each.exception()) is None:
                    tries |= done - {each}
                    return each.result()
                failed.append(error)
    finally:
        for each in tries:
            each.add_done_callback(_unused)
            each.cancel()
    raise OSError("; ".join(dict.fromkeys(map(str, failed)))) from failed[-1]


def _unused(lost: asyncio.Task[socket.socket]) -> None:
    if not lost.cancelled() and lost.exception() is None:
        lost.result().close()
