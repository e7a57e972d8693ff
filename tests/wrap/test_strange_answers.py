"""Whatever an endpoint writes into its answer, a client gets it, a report, and one span."""

from __future__ import annotations

import copy
import logging
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import specclient
from tests.server import Answer, Request, ScriptedServer, completion, finish, reply, role, sse, usage_chunk

NONSENSE = (None, True, 0, -1, 1e300, "x", "", [], {}, [1], {"a": 1}, "9" * 40, 3.5, [[]], [None])
METRICS = {
    "queue_time_ms": 1,
    "time_to_first_token_ms": 2,
    "generation_time_ms": 3,
    "speculative_decoding": {"num_draft_tokens": 4, "num_accepted_draft_tokens": 3},
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def spoilt(value: Any, draw: random.Random) -> Any:
    value = copy.deepcopy(value)
    for _ in range(draw.choice([1, 2])):
        *way, last = draw.choice(list(places(value)))
        place = value
        for step in way:
            place = place[step]
        place[last] = draw.choice(NONSENSE)
    return value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("door", ["client", "wrap"])
def test_nonsense_passes(door: str, stream: bool, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    draw = random.Random(seed)
    whole = {**completion("x"), "metrics": METRICS}
    event = {**whole, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "x"}}]}

    def respond(_: Request) -> Answer:
        if not stream:
            return reply(spoilt(whole, draw))
        return sse(role(), spoilt(event, draw), spoilt(finish(), draw), usage_chunk(completion_tokens=2))

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = specclient.TracingOptions(tracer_provider=provider)
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}], "stream": stream}
    calls = 60
    with caplog.at_level(logging.DEBUG, "specclient"), ScriptedServer() as server:
        server.respond = respond
        if door == "client":
            with specclient.Client(
                provider="vllm", model="m", base_url=server.url, tracing=tracing, max_retries=0
            ) as client:
                for _ in range(calls):
                    ask(client, body)
        else:
            with specclient.wrap(httpx.Client(), provider="vllm", tracing=tracing) as http:
                for _ in range(calls):
                    answer = http.post(f"{server.url}/chat/completions", json={**body, "model": "m"})
                    # A stream without an event that could be its last has no room for it in the text.
                    assert '"specclient":' in answer.text or "specclient" in answer.extensions
    assert len([span for span in exporter.get_finished_spans() if span.name == "chat m"]) == calls
    faults = [record.exc_info for record in caplog.records if record.exc_info]
    assert faults == []


def ask(client: specclient.Client, body: dict[str, Any]) -> None:
    """An answer that makes no sense is an error of this library's own, with its report."""
    found: Any
    try:
        answer = client.chat.completions.create(**body)
        found = (list(answer)[-1] if body["stream"] else answer).specclient
    except specclient.APIError as error:
        found = error.report
    assert found is not None
