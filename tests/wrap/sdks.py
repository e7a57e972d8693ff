"""The six official SDKs behind one face, so that every test runs through each of them."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

MESSAGES = [{"role": "user", "content": "Rename foo to bar."}]


@dataclass(frozen=True)
class Kind:
    """How one SDK is made and called. `root` is what its base URL lacks of the API's path."""

    name: str
    module: str
    classes: tuple[str, str]
    provider: str
    model: str
    documented: bool = True
    ends_in_v1: bool = False
    keeps_unknown_fields: bool = True

    @property
    def facts(self) -> dict[str, Any]:
        """Corrections that keep what the tests rely on true on any day."""
        return {"prediction": {"state": "documented", "until": "2099-12-31"}} if self.documented else {}


KINDS = {
    kind.name: kind
    for kind in (
        Kind("openai", "openai", ("OpenAI", "AsyncOpenAI"), "openai", "gpt-4o", ends_in_v1=True),
        Kind("groq", "groq", ("Groq", "AsyncGroq"), "groq", "llama-3.1-8b-instant", documented=False),
        Kind("cerebras", "cerebras.cloud.sdk", ("Cerebras", "AsyncCerebras"), "cerebras", "gpt-oss-120b"),
        Kind(
            "fireworks",
            "fireworks",
            ("Fireworks", "AsyncFireworks"),
            "fireworks",
            "accounts/fireworks/models/x",
        ),
        Kind(
            "together",
            "together",
            ("Together", "AsyncTogether"),
            "together",
            "zai-org/GLM-5",
            documented=False,
        ),
        Kind(
            "mistralai",
            "mistralai.client",
            ("Mistral", "Mistral"),
            "mistral",
            "codestral-latest",
            keeps_unknown_fields=False,
        ),
    )
}


class Sdk:
    """One SDK client, called alike whether it is sync or async. Close it."""

    def __init__(self, kind: Kind, origin: str, *, is_async: bool, **options: Any) -> None:
        module = pytest.importorskip(kind.module, reason=f"the {kind.name} SDK is not installed")
        self.kind = kind
        self.is_async = is_async
        self.runner = asyncio.Runner() if is_async else None
        make: Any = getattr(module, kind.classes[is_async])
        if kind.name == "mistralai":
            self.client = make(api_key="k", server_url=origin)
        else:
            base_url = f"{origin}/v1" if kind.ends_in_v1 else origin
            options = {"max_retries": 0} | options
            if kind.name == "cerebras":
                options["warm_tcp_connection"] = False
            self.client = self.run(lambda: make(api_key="k", base_url=base_url, **options))

    def run(self, call: Callable[[], Any]) -> Any:
        """The result of `call`, awaited in this client's own loop where it is async."""
        if self.runner is None:
            return call()

        async def awaited() -> Any:
            result = call()
            return await result if asyncio.iscoroutine(result) else result

        return self.runner.run(awaited(), context=contextvars.copy_context())

    def create(self, **arguments: Any) -> Any:
        """A plain answer."""
        return self.run(lambda: self._method(stream=False)(**self._arguments(arguments)))

    def stream(self, **arguments: Any) -> list[Any]:
        """All chunks of a streamed answer."""
        if self.runner is None:
            return [self._chunk(event) for event in self.open_stream(**arguments)]
        return self.runner.run(self._collect(arguments), context=contextvars.copy_context())

    def open_stream(self, **arguments: Any) -> Any:
        """A stream that has just begun (sync only)."""
        return self._method(stream=True)(**self._arguments(arguments, stream=True))

    async def aopen_stream(self, **arguments: Any) -> Any:
        return await self._method(stream=True)(**self._arguments(arguments, stream=True))

    async def _collect(self, arguments: dict[str, Any]) -> list[Any]:
        stream = await self.aopen_stream(**arguments)
        return [self._chunk(event) async for event in stream]

    def _chunk(self, event: Any) -> Any:
        return event.data if self.kind.name == "mistralai" else event

    def _method(self, *, stream: bool) -> Any:
        if self.kind.name != "mistralai":
            return self.client.chat.completions.create
        name = "stream" if stream else "complete"
        return getattr(self.client.chat, f"{name}_async" if self.is_async else name)

    def _arguments(self, arguments: dict[str, Any], *, stream: bool = False) -> dict[str, Any]:
        full = {"model": self.kind.model, "messages": MESSAGES} | arguments
        return full | {"stream": True} if stream and self.kind.name != "mistralai" else full

    def close(self) -> None:
        if self.kind.name == "mistralai":
            configuration = self.client.sdk_configuration
            configuration.client.close()
            if self.runner is not None:
                self.runner.run(configuration.async_client.aclose())
        else:
            self.run(self.client.close)
        if self.runner is not None:
            self.runner.close()


def text_of(answer: Any) -> str:
    """The text of a plain answer, or of all chunks of a stream."""
    if isinstance(answer, list):
        deltas = [choice.delta for chunk in answer for choice in (chunk.choices or ())]
        # The cerebras SDK leaves the parts of a chunk as dicts where the chunk lacks a field.
        return "".join((d.get("content") if isinstance(d, dict) else d.content) or "" for d in deltas if d)
    return str(answer.choices[0].message.content)


def installed(name: str) -> bool:
    try:
        importlib.import_module(KINDS[name].module)
    except ImportError:
        return False
    return True
