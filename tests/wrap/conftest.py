"""The official SDKs, bare and wrapped, over the scripted server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import specclient.middleware
from tests.server import ScriptedServer
from tests.wrap.sdks import KINDS, Sdk


@pytest.fixture
def open_sdk(server: ScriptedServer) -> Iterator[Callable[..., Sdk]]:
    """Makes SDK clients that talk to the scripted server, and closes them."""
    opened: list[Sdk] = []

    def make(name: str, *, is_async: bool = False, **options: Any) -> Sdk:
        sdk = Sdk(KINDS[name], server.origin, is_async=is_async, **options)
        opened.append(sdk)
        return sdk

    yield make
    for sdk in opened:
        sdk.close()


@pytest.fixture(autouse=True)
def nothing_learnt() -> Iterator[None]:
    """Refusals are remembered by the process; every test begins without any."""
    from specclient.middleware import wrapping

    wrapping._learned.clear()
    yield
    wrapping._learned.clear()


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=list(KINDS))
def sdk(request: pytest.FixtureRequest, is_async: bool, open_sdk: Callable[..., Sdk]) -> Sdk:
    """Each SDK, wrapped, with its provider named because loopback has none."""
    made = open_sdk(request.param, is_async=is_async)
    specclient.middleware.wrap(made.client, provider=made.kind.provider, overrides=made.kind.facts)
    return made
