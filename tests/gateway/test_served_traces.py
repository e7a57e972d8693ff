"""A served request is part of the caller's trace, and holds nothing of its content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specclient.tracing import TracingOptions
from tests import server as scripted
from tests.gateway.conftest import Running
from tests.server import ScriptedServer, Stall

trace = pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
SECRETS = (
    "the-secret-prompt",
    "the-secret-prediction",
    "the-secret-output",
    "sk-upstream",
    "the-secret-token",
)


@pytest.fixture
def exporter() -> Any:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: Any) -> TracingOptions:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return TracingOptions(tracer_provider=provider)


@pytest.mark.parametrize("stream", [False, True])
def test_our_server_span_joins_the_callers_trace(
    start: Callable[..., Running],
    upstream: ScriptedServer,
    exporter: Any,
    tracing: TracingOptions,
    stream: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", logger="specclient")
    gateway = start(tracing=tracing, token="the-secret-token")
    output = "the-secret-output"
    upstream.play(
        scripted.sse(scripted.chunk(output), scripted.finish())
        if stream
        else scripted.reply(scripted.completion(output))
    )
    gateway.client.post(
        "/chat/completions",
        json={
            "model": "predicting",
            "messages": [{"role": "user", "content": "the-secret-prompt"}],
            "prediction": "the-secret-prediction",
            "stream": stream,
        },
        headers=PARENT | {"authorization": "Bearer the-secret-token"},
    ).raise_for_status()
    gateway.server.should_exit = True
    spans = {span.kind.name: span for span in _finished(exporter, 2)}
    assert {span.context.trace_id for span in spans.values()} == {int(TRACE_ID, 16)}
    assert f"{spans['SERVER'].parent.span_id:016x}" == "b7ad6b7169203331"
    assert spans["CLIENT"].parent.span_id == spans["SERVER"].context.span_id
    assert spans["SERVER"].name == "POST /v1/chat/completions"
    assert spans["SERVER"].attributes["http.response.status_code"] == 200
    assert spans["CLIENT"].attributes["specclient.adapter"] == "gateway"
    told = "".join(span.to_json() for span in spans.values()) + caplog.text
    assert not [secret for secret in SECRETS if secret in told]


def test_a_request_that_is_left_ends_both_spans(
    start: Callable[..., Running], upstream: ScriptedServer, exporter: Any, tracing: TracingOptions
) -> None:
    gateway = start(tracing=tracing)
    upstream.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
        next(answer.iter_lines())
    assert {span.kind.name for span in _finished(exporter, 2)} == {"SERVER", "CLIENT"}


def _finished(exporter: Any, count: int) -> Any:
    """The spans, once there are as many: the last one ends a moment after the client has its answer."""
    import time

    for _ in range(500):
        if len(exporter.get_finished_spans()) >= count:
            break
        time.sleep(0.01)
    return exporter.get_finished_spans()


def test_a_client_names_the_workload_by_a_header(
    start: Callable[..., Running], upstream: ScriptedServer, exporter: Any, tracing: TracingOptions
) -> None:
    gateway = start(tracing=tracing)
    upstream.play(scripted.reply(scripted.completion("x")))
    body = {"model": "plain", "messages": [{"role": "user", "content": "x"}]}
    named = {"x-specclient-workload": "edits"}
    gateway.client.post("/chat/completions", json=body, headers=named).raise_for_status()
    refused = gateway.client.post(
        "/chat/completions", json=body, headers={"x-specclient-workload": "x" * 101}
    )
    (call,) = (span for span in exporter.get_finished_spans() if span.name == "chat some-model")
    assert call.attributes["specclient.workload"] == "edits"
    assert "x-specclient-workload" not in upstream.requests[0].headers
    assert refused.status_code == 400
