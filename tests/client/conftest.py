"""Both clients behind one door, and waits that take no time."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from specclient.core import drive
from tests.client.proxy import Proxy
from tests.doors import AsyncDoor, SyncDoor
from tests.server import ScriptedServer


@pytest.fixture(params=[SyncDoor, AsyncDoor], ids=["sync", "async"])
def door(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[SyncDoor]:
    opened = request.param(server)
    yield opened
    opened.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    running = Proxy()
    yield running
    running.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Back-off is not slept but noted here."""
    noted: list[float] = []

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr(drive, "time", SimpleNamespace(sleep=noted.append))
    monkeypatch.setattr(drive, "asyncio", SimpleNamespace(sleep=sleep))
    return noted
