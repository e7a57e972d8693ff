"""Both clients behind one door, chains of targets, and waits that take no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


@pytest.fixture
def second() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def configured(
    door: SyncDoor, second: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Makes a client for the target `prod`, whose chain is prod -> backup (-> local)."""
    monkeypatch.setenv("PROD_KEY", "sk-prod-key")
    monkeypatch.setenv("BACKUP_KEY", "sk-backup-key")

    def make(
        *, prod: str = "", backup: str = "", chain: str = '["backup"]', more: str = "", **arguments: Any
    ) -> Any:
        path = tmp_path / "specclient.toml"
        path.write_text(f"""
default = "prod"
[targets.prod]
provider = "openai_compatible"
base_url = "{door.server.url}"
model = "prod-model"
api_key_env = "PROD_KEY"
fallback = {chain}
max_retries = 1
{prod}
[targets.backup]
provider = "openai_compatible"
base_url = "{second.url}"
model = "backup-model"
api_key_env = "BACKUP_KEY"
max_retries = 1
{backup}
{more}
""")
        return door.make(config=path, **arguments)

    return make
