"""Cancelled at any moment, a wrapped call leaves nothing behind: no socket, no task, one ended span."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from specclient.middleware import predicting, wrap
from specclient.tracing import TracingOptions
from tests import server as scripted
from tests.server import ScriptedServer

trace = pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

CERTIFICATES = ssl.create_default_context()
"""Made once: it is most of the cost of a client, and each cancelled call gets a client of its own, because
httpx itself loses a place in the pool when it is cancelled at certain moments, wrapped or not."""

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}
FACTS = {"prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}


class Stepper:
    """Awaits a coroutine and cancels its task after a number of resumptions; `resumed` counts them."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], cancel_at: int | None) -> None:
        self._coroutine = coroutine
        self._cancel_at = cancel_at
        self.resumed = 0

    def __await__(self) -> Any:
        go_on: Any = self._coroutine.send
        value: Any = None
        while True:
            if self.resumed == self._cancel_at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            self.resumed += 1
            try:
                waited_for = go_on(value)
            except StopIteration as end:
                return end.value
            try:
                value = yield waited_for
                go_on = self._coroutine.send
            except BaseException as error:
                value, go_on = error, self._coroutine.throw


async def plain(client: httpx.AsyncClient) -> None:
    await client.post("/chat/completions", json=BODY)


async def stream(client: httpx.AsyncClient) -> None:
    async with client.stream("POST", "/chat/completions", json=BODY | {"stream": True}) as answer:
        async for _ in answer.aiter_lines():
            await asyncio.sleep(0)


async def refused(client: httpx.AsyncClient) -> None:
    await client.post("/chat/completions", json=BODY | {"prediction": "x"})


async def refused_in_a_stream(client: httpx.AsyncClient) -> None:
    fields = {"stream": True, "prediction": "x"}
    async with client.stream("POST", "/chat/completions", json=BODY | fields) as answer:
        async for _ in answer.aiter_lines():
            await asyncio.sleep(0)


def played(kind: Any, server: ScriptedServer) -> None:
    if kind is plain:
        server.respond = lambda _: scripted.reply(scripted.completion())
    elif kind is stream:
        server.respond = lambda _: scripted.sse(
            scripted.chunk("a"), scripted.Wait(0.002), scripted.chunk("b"), scripted.finish()
        )
    elif kind is refused_in_a_stream:
        refusal = {"error": {"message": "property 'prediction' is unsupported", "code": 400}}
        server.respond = lambda request: (
            scripted.sse(refusal, scripted.Wait(0.002), done=False)
            if "prediction" in request.json
            else scripted.sse(scripted.chunk("a"), scripted.Wait(0.002), scripted.finish())
        )
    else:
        server.respond = lambda request: (
            scripted.error(400, "Unrecognized request argument supplied: prediction", param="prediction")
            if "prediction" in request.json
            else scripted.reply(scripted.completion())
        )


@pytest.mark.parametrize("kind", [plain, stream, refused, refused_in_a_stream])
def test_cancelled_at_every_await(kind: Any, server: ScriptedServer) -> None:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from specclient.middleware import wrapping

    played(kind, server)
    exporter = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    options = TracingOptions(tracer_provider=provider)

    async def once(cancel_at: int | None) -> bool:
        """True when the call ran to its end before it could be cancelled."""
        wrapping._learned.clear()
        exporter.clear()
        started = len(server.requests)
        async with httpx.AsyncClient(base_url=server.url, verify=CERTIFICATES) as client:
            wrap(client, provider="openai", overrides=FACTS, tracing=options)
            stepper = Stepper(kind(client), cancel_at)
            task = asyncio.create_task(_run(stepper))
            await asyncio.wait({task})
            finished = not task.cancelled()
            if finished:
                task.result()
            # A second call over the same pool: what was cancelled has not spoilt it.
            await client.get("/models")
        gc.collect()
        assert len(asyncio.all_tasks()) == 1
        spans = [span for span in exporter.get_finished_spans() if span.name.startswith("chat")]
        assert len(spans) <= 1
        assert spans or len(server.requests) - started <= 1, "a call that was sent has no span"
        return finished

    async def main() -> None:
        with predicting(None):
            cancel_at = 1
            while not await once(cancel_at):
                cancel_at += 1
        assert cancel_at > 3

    original = server.respond
    assert original is not None
    server.respond = lambda request: (
        scripted.reply({"data": []}) if request.method == "GET" else original(request)
    )
    asyncio.run(main())
    server.wait_for(lambda seen: seen.open_connections == 0)


async def _run(stepper: Stepper) -> None:
    await stepper
