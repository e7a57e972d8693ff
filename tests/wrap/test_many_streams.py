"""A thousand streams at once through a wrapped SDK: nothing lost, nothing mixed up, nothing left open."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Iterator
from typing import Any

import pytest

from specclient.middleware import report_of, wrap
from tests.server import DONE, chunk, data, finish, head, role, usage_chunk

pytestmark = pytest.mark.sdk

STREAMS = 1000
WORDS = 20
"""Chunks of content a stream. The SDK itself takes most of the time, about 80 µs a chunk."""


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for both ends of every connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * STREAMS + 200
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"needs {needed} open files, and {hard} are allowed")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Endpoint:
    """Answers on the test's own loop. No stream goes on before all have begun: they are open at once."""

    def __init__(self) -> None:
        self.begun = 0
        self.open = 0
        self.most = 0
        self._all_begun = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
            await self._answer(json.loads(await reader.readexactly(length)), writer)
        finally:
            self.open -= 1
            writer.close()

    async def _answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        name = asked["messages"][0]["content"]
        writer.write(head(200, {"content-type": "text/event-stream", "connection": "close"}))
        writer.write(data(role()))
        await writer.drain()
        self.begun += 1
        if self.begun == STREAMS:
            self._all_begun.set()
        await self._all_begun.wait()
        for word in range(WORDS):
            writer.write(data(chunk(f"{name}-{word} ")))
            if word % 7 == 0:  # some events share a packet, and some do not
                await writer.drain()
                await asyncio.sleep(0)
        writer.write(data(finish()) + data(usage_chunk(completion_tokens=WORDS)) + DONE)
        await writer.drain()


async def ask(client: Any, number: int) -> tuple[str, Any]:
    stream = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": f"s{number}"}], stream=True
    )
    text, last = [], None
    async for last in stream:
        text += [choice.delta.content or "" for choice in last.choices]
    return "".join(text), report_of(last)


@pytest.mark.usefixtures("many_files")
def test_a_thousand_streams_lose_nothing() -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

    async def main() -> tuple[Endpoint, list[tuple[str, Any]], int]:
        endpoint = Endpoint()
        server = await asyncio.start_server(endpoint, "127.0.0.1", 0, backlog=STREAMS)
        port = server.sockets[0].getsockname()[1]
        before = len(asyncio.all_tasks())
        async with openai.AsyncOpenAI(
            base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0, timeout=120
        ) as client:
            wrap(client, provider="openai")
            found = await asyncio.gather(*(ask(client, number) for number in range(STREAMS)))
        server.close()
        await server.wait_closed()
        for _ in range(1000):  # the server's own tasks end when they have seen the client leave
            if len(asyncio.all_tasks()) <= before:
                break
            await asyncio.sleep(0.01)
        return endpoint, list(found), len(asyncio.all_tasks()) - before

    endpoint, found, tasks_left = asyncio.run(main())
    assert [text for text, _ in found] == [
        "".join(f"s{number}-{word} " for word in range(WORDS)) for number in range(STREAMS)
    ]
    assert endpoint.most == STREAMS, "all of them were open at once"
    assert all(report.usage.completion == WORDS for _, report in found)
    assert (endpoint.open, tasks_left) == (0, 0)
