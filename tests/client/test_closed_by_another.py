"""A stream is closed by another thread or task than the one that waits for its next chunk: a stop button."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import specclient
from tests.client.fake_engine import FakeEngine
from tests.doors import KEY, MESSAGES
from tests.server import ScriptedServer, Stall, chunk, completion, data, error, reply, role, stream

Asked = Callable[[], bool]


def read_until_closed(arguments: dict[str, Any], is_async: bool, waiting: Asked, then: Asked) -> list[Any]:
    """What the reader got of a stream that is closed while it waits; `then` tells whether all is well."""
    got: list[Any] = []

    def sync() -> None:
        with specclient.Client(**arguments) as client:
            opened = client.chat.completions.create(messages=MESSAGES, stream=True)
            reader = threading.Thread(target=lambda: got.extend([*opened, "end"]))
            reader.start()
            while not waiting():
                pass
            opened.close()
            reader.join(10)
            assert not opened.completed
            assert opened.specclient is not None
            opened.close()
            assert then()
            assert client.chat.completions.create(messages=MESSAGES).choices

    async def asynchronous() -> None:
        async with specclient.AsyncClient(**arguments) as client:
            opened = await client.chat.completions.create(messages=MESSAGES, stream=True)

            async def read() -> None:
                got.extend([each async for each in opened])
                got.append("end")

            reader = asyncio.create_task(read())
            while not waiting():
                await asyncio.sleep(0.01)
            await opened.close()
            async with asyncio.timeout(10):
                await reader
            assert not opened.completed
            assert opened.specclient is not None
            await opened.close()
            assert then()
            assert (await client.chat.completions.create(messages=MESSAGES)).choices

    asyncio.run(asynchronous()) if is_async else sync()
    return got


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("pieces", [[data(role())], [data(role()), data(chunk("a"))]])
def test_its_reader_is_at_the_end(
    server: ScriptedServer, pieces: list[bytes], gzip: bool, is_async: bool
) -> None:
    """Before the first content too, where a broken connection would be a reason to try again."""
    stalled = stream(*pieces, Stall(), gzip=gzip)
    server.respond = lambda request: stalled if request.json.get("stream") else reply(completion())
    arguments = {"provider": "openai_compatible", "base_url": server.url, "model": "m", "api_key": KEY}
    seen = threading.Event()
    first = threading.Timer(0.2, seen.set)  # by then it waits; nothing depends on it but what is tried
    first.start()
    got = read_until_closed(arguments, is_async, seen.is_set, lambda: True)
    assert got[-1] == "end"
    assert [each.choices[0].delta.content for each in got[:-1]] == ["", "a"][: len(got) - 1]
    assert [request.json.get("stream") for request in server.requests] == [True, None]
    server.wait_for(lambda server: server.left == 1)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_between_two_tries_too(server: ScriptedServer, is_async: bool) -> None:
    server.play(
        stream(data(role()), terminate=False),
        error(503, "busy", {"retry-after-ms": "400"}),
        stream(data(chunk("a")), Stall()),
        reply(completion()),
    )
    arguments = {"provider": "openai_compatible", "base_url": server.url, "model": "m", "api_key": KEY}
    got = read_until_closed(arguments, is_async, lambda: len(server.requests) == 2, lambda: True)
    assert got == ["end"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_engine_is_told(is_async: bool) -> None:
    engine = FakeEngine("a", hang=True)

    def closed() -> bool:
        engine.hang = False
        return engine.handles[0].cancelled.is_set()

    arguments = {"provider": "local", "model": "tiny", "engine": engine}
    got = read_until_closed(
        arguments, is_async, lambda: bool(engine.handles) and not engine.handles[0]._steps, closed
    )
    assert [each.choices[0].delta.content for each in got[:-1]] == ["", "a"]
