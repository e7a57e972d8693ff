"""A call that has ended is freed at once: left to the garbage collector, its prompt would stay in memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from specclient import wrap
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.sdks import Sdk

pytestmark = pytest.mark.sdk


@pytest.fixture
def left_behind() -> Iterator[Callable[[], set[str]]]:
    """Which of our classes the collector finds among what can no longer be reached."""

    def look() -> set[str]:
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            gc.collect()
            return {
                type(found).__qualname__ for found in gc.garbage if "specclient" in type(found).__module__
            }
        finally:
            gc.set_debug(0)
            gc.garbage.clear()

    gc.collect()
    gc.disable()
    yield look
    gc.enable()


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_an_ended_call_is_freed_at_once(
    open_sdk: Callable[..., Sdk],
    server: ScriptedServer,
    is_async: bool,
    streamed: bool,
    left_behind: Callable[[], set[str]],
) -> None:
    sdk = open_sdk("openai", is_async=is_async)
    wrap(sdk.client, provider="openai")
    if streamed:
        server.play(scripted.sse(scripted.role(), scripted.chunk("Hello"), scripted.finish()))
        sdk.stream()
    else:
        server.play(scripted.reply(scripted.completion("Hello")))
        sdk.create()
    assert left_behind() == set()
