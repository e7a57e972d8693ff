"""One set of tests for both clients: a `door` is a client, sync or async, that a plain test can drive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import specclient
from tests.server import ScriptedServer

KEY = "sk-sentinel-0123456789"
MESSAGES = [{"role": "user", "content": "Say hello."}]


class SyncDoor:
    kind = "sync"

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.made: list[Any] = []

    def make(self, **arguments: Any) -> Any:
        """A client for the scripted server, unless `target` or `provider` says otherwise."""
        if "target" not in arguments and "config" not in arguments:
            arguments = {
                "provider": "openai_compatible",
                "base_url": self.server.url,
                "model": "m",
                "api_key": KEY,
                **arguments,
            }
        client = self._make(**arguments)
        self.made.append(client)
        return client

    @property
    def client(self) -> Any:
        return self.made[-1] if self.made else self.make()

    def _make(self, **arguments: Any) -> Any:
        return specclient.Client(**arguments)

    def run(self, value: Any) -> Any:
        """What a call of either client comes to."""
        return value

    def create(self, **arguments: Any) -> Any:
        return self.run(self.client.chat.completions.create(**{"messages": MESSAGES, **arguments}))

    @property
    def sent(self) -> Any:
        """The body of the last request."""
        return self.server.requests[-1].json

    def open(self, **arguments: Any) -> OpenStream:
        return OpenStream(self, self.create(stream=True, **arguments))

    def read(self, **arguments: Any) -> list[Any]:
        return list(self.open(**arguments))

    def text(self, **arguments: Any) -> str:
        return text_of(self.read(**arguments))

    def collect(self, **arguments: Any) -> Any:
        """The answer that a stream of events adds up to."""
        with self.client.chat.completions.stream(**{"messages": MESSAGES, **arguments}) as events:
            return events.get_final_completion()

    def next(self, iterator: Any) -> Any:
        return next(iterator, None)

    def close(self) -> None:
        for client in self.made:
            client.close()


class AsyncDoor(SyncDoor):
    kind = "async"

    def __init__(self, server: ScriptedServer) -> None:
        super().__init__(server)
        self.runner = asyncio.Runner()

    def _make(self, **arguments: Any) -> Any:
        return specclient.AsyncClient(**arguments)

    def collect(self, **arguments: Any) -> Any:
        async def read() -> Any:
            async with self.client.chat.completions.stream(**{"messages": MESSAGES, **arguments}) as events:
                return await events.get_final_completion()

        return self.run(read())

    def run(self, value: Any) -> Any:
        async def wait() -> Any:
            return await value

        return self.runner.run(wait()) if hasattr(value, "__await__") else value

    def next(self, iterator: Any) -> Any:
        async def step() -> Any:
            return await anext(aiter(iterator), None)

        return self.runner.run(step())

    def close(self) -> None:
        for client in self.made:
            self.runner.run(client.close())
        self.runner.close()


class OpenStream:
    """A stream of either client, iterated by a plain `for`."""

    def __init__(self, door: SyncDoor, stream: Any) -> None:
        self.door = door
        self.stream = stream

    def __iter__(self) -> Iterator[Any]:
        while (chunk := self.door.next(self.stream)) is not None:
            yield chunk

    def close(self) -> None:
        self.door.run(self.stream.close())


def text_of(chunks: list[Any]) -> str:
    return "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)
