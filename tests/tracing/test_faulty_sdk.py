"""What an application's own span processors, exporters and limits do wrong never reaches a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler
from tracing_helpers import Backend

import specclient
from specclient.config import load_config
from specclient.tracing import start_server
from tests.server import ScriptedServer, chunk, completion, error, finish, reply, role, sse, usage_chunk

MESSAGES = [{"role": "user", "content": "x"}]
STREAM = sse(role(), chunk("a"), chunk("b"), finish(), usage_chunk(prompt_tokens=3, completion_tokens=2))


class FailsAtStart(SpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("start")


class FailsAtEnd(SpanProcessor):
    def on_end(self, span: Any) -> None:
        raise RuntimeError("end")


class Fails(FailsAtStart, FailsAtEnd):
    pass


class FailsToExport(SpanExporter):
    def export(self, spans: Any) -> Any:
        raise RuntimeError("export")


class FailsToSample(Sampler):
    def should_sample(self, *arguments: Any, **rest: Any) -> Any:
        raise RuntimeError("sample")

    def get_description(self) -> str:
        return "fails"


def provider(*processors: SpanProcessor, **rest: Any) -> TracerProvider:
    made = TracerProvider(**rest)
    for processor in processors:
        made.add_span_processor(processor)
    return made


FAULTY = {
    "start": lambda: provider(FailsAtStart()),
    "end": lambda: provider(FailsAtEnd()),
    "both": lambda: provider(Fails()),
    "export": lambda: provider(SimpleSpanProcessor(FailsToExport())),
    "sampler": lambda: provider(sampler=FailsToSample()),
}


@pytest.fixture
def server(server: ScriptedServer) -> ScriptedServer:
    server.respond = lambda request: STREAM if request.json.get("stream") else reply(completion("x", id="a"))
    return server


@pytest.fixture(params=list(FAULTY))
def tracing(request: pytest.FixtureRequest) -> specclient.TracingOptions:
    return specclient.TracingOptions(tracer_provider=FAULTY[request.param](), phases="all")


def arguments(server: ScriptedServer, tracing: Any, **rest: Any) -> dict[str, Any]:
    place = {"provider": "vllm", "model": "m", "base_url": f"{server.url}/v1", "api_key": "k"}
    return {**place, "tracing": tracing, "max_retries": 0, **rest}


def test_a_client_answers(server: ScriptedServer, tracing: Any) -> None:
    with specclient.Client(**arguments(server, tracing)) as client:
        assert client.chat.completions.create(messages=MESSAGES).specclient.target == "vllm"
        chunks = list(client.chat.completions.create(messages=MESSAGES, stream=True))
        assert chunks[-1].specclient is not None
        with client.chat.completions.create(messages=MESSAGES, stream=True) as stream:
            next(iter(stream))


def test_an_error_stays_itself(server: ScriptedServer, tracing: Any) -> None:
    server.respond = lambda _: error(400, "no")
    with specclient.Client(**arguments(server, tracing)) as client, pytest.raises(specclient.BadRequestError):
        client.chat.completions.create(messages=MESSAGES)


def test_a_wrapped_client_answers(server: ScriptedServer, tracing: Any) -> None:
    with specclient.wrap(httpx.Client(), provider="vllm", tracing=tracing) as client:
        for stream in (False, True):
            body = {"model": "m", "messages": MESSAGES, "stream": stream}
            assert "specclient" in client.post(f"{server.url}/v1/chat/completions", json=body).text


def test_a_chain_of_targets_goes_on(server: ScriptedServer, tracing: Any, tmp_path: Path) -> None:
    server.respond = lambda r: error(503, "down") if r.json["model"] == "first" else reply(completion("x"))
    common = f'provider = "vllm"\nbase_url = "{server.url}/v1"\napi_key = "k"\nmax_retries = 0\n'
    path = tmp_path / "specclient.toml"
    path.write_text(
        f'[targets.a]\nmodel = "first"\nfallback = ["b"]\n{common}[targets.b]\nmodel = "second"\n{common}'
    )
    with specclient.Client(target="a", config=load_config(path), tracing=tracing) as client:
        assert client.chat.completions.create(messages=MESSAGES).specclient.target == "b"


def test_a_served_request_is_answered(tracing: Any) -> None:
    start_server({}, method="POST", route="/v1", options=tracing).finish(200)


def test_a_call_that_is_not_sampled_says_so_to_the_server(server: ScriptedServer) -> None:
    backend = Backend()
    backend.tracer_provider = provider(SimpleSpanProcessor(backend.spans), sampler=ParentBased(ALWAYS_OFF))
    with specclient.Client(**arguments(server, backend.options())) as client:
        list(client.chat.completions.create(messages=MESSAGES, stream=True))
    flags = int(server.requests[0].headers["traceparent"].rpartition("-")[2], 16)
    assert flags & 1 == 0
    assert backend.names() == []
    assert "gen_ai.client.operation.duration" in backend.points()


def test_limits_of_the_sdk_hold(server: ScriptedServer) -> None:
    backend = Backend()
    limits = SpanLimits(max_attributes=5, max_events=1, max_attribute_length=10)
    backend.tracer_provider = provider(SimpleSpanProcessor(backend.spans), span_limits=limits)
    options = backend.options(capture_content="SPAN_ONLY")
    with specclient.Client(**arguments(server, options)) as client:
        long = [{"role": "user", "content": "y" * 1_000_000}]
        list(client.chat.completions.create(messages=long, stream=True))
    span = backend.span("chat m")
    assert len(span.attributes) == 5
    assert all(len(value) <= 10 for value in span.attributes.values() if isinstance(value, str))
    assert len(span.events) == 1
