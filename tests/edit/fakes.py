"""A client that answers from a script, sync and async: edit needs nothing of it but `create`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any


def chunk(
    content: str | None = None, *, finish: str | None = None, reasoning: str | None = None, **extra: Any
) -> SimpleNamespace:
    delta = SimpleNamespace(content=content, reasoning_content=reasoning, role=None)
    return SimpleNamespace(choices=[SimpleNamespace(index=0, delta=delta, finish_reason=finish)], **extra)


class Stream:
    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks
        self.closed = False

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed = True

    def __iter__(self) -> Iterator[Any]:
        yield from self.chunks

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self.chunks:
            yield item


class FakeClient:
    """`script` is the answer: a text (cut into pieces of seven characters) or a list of chunks."""

    def __init__(self, script: str | list[Any], *, finish: str = "stop") -> None:
        if isinstance(script, str):
            pieces = [chunk(script[at : at + 7]) for at in range(0, len(script), 7)]
            script = [*pieces, chunk(finish=finish)]
        self.stream = Stream(script)
        self.request: dict[str, Any] = {}
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def create(self, **request: Any) -> Stream:
        self.request = request
        return self.stream


class AsyncFakeClient(FakeClient):
    async def create(self, **request: Any) -> Stream:  # type: ignore[override]
        self.request = request
        return self.stream
