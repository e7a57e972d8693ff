"""One span a call, whoever else watches it: real instrumentations around and under our call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import baggage, context
from tracing_helpers import Backend

from specclient.report import Phase, Report
from specclient.tracing import CallStart, start_call
from tests.server import ScriptedServer, chunk, completion, finish, reply, role, sse

pytestmark = pytest.mark.sdk


class Reading:
    prefill = Phase(seconds=1e-6, source="server")


@pytest.fixture
def openai_instrumented(backend: Backend) -> Iterator[None]:
    genai = pytest.importorskip("opentelemetry.instrumentation.genai.openai")
    instrumentor = genai.OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=backend.tracer_provider, meter_provider=backend.meter_provider)
    yield
    instrumentor.uninstrument()


def ask(server: ScriptedServer, transport: Any = None, **rest: Any) -> Any:
    openai = pytest.importorskip("openai")
    httpx2 = pytest.importorskip("httpx2")
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="k", http_client=httpx2.Client(transport=transport)
    ) as client:
        messages = [{"role": "user", "content": "x"}]
        answer = client.chat.completions.create(model="m", messages=messages, **rest)
        return list(answer) if rest.get("stream") else answer


def report() -> Report:
    return Report(target="t", provider="openai", model="m")


@pytest.mark.usefixtures("openai_instrumented")
def test_an_official_instrumentation_under_our_call_stays_silent(
    backend: Backend, server: ScriptedServer
) -> None:
    server.play(reply(completion()))
    call = start_call(CallStart(provider="openai", model="m", adapter="client"), backend.options())
    with call.current():
        ask(server)
    call.finish(report())
    assert backend.names() == ["chat m"]
    assert backend.span("chat m").attributes["specclient.adapter"] == "client"


@pytest.mark.usefixtures("openai_instrumented")
@pytest.mark.parametrize("stream", [False, True])
def test_under_an_official_instrumentation_we_enrich_its_span(
    backend: Backend, server: ScriptedServer, stream: bool
) -> None:
    httpx2 = pytest.importorskip("httpx2")
    server.play(sse(role(), chunk("Hello"), finish()) if stream else reply(completion()))

    class Ours(httpx2.BaseTransport):  # type: ignore[misc,name-defined]
        def handle_request(self, request: Any) -> Any:
            call = start_call(CallStart(provider="openai", model="m", stream=stream), backend.options())
            with inner, call.current():
                response = inner.handle_request(request)
                response.read()
            call.timeline.frame()
            call.timeline.content()
            timing = call.timeline.timing(Reading(), streamed=stream)
            call.finish(report().model_copy(update={"timing": timing}))
            return response

    inner = httpx2.HTTPTransport()
    ask(server, Ours(), stream=stream)
    assert backend.names() == ["chat m", "prefill"]
    vendor = backend.span("chat m")
    assert vendor.instrumentation_scope.name != "specclient"
    assert vendor.attributes["specclient.timing.prefill"] == 1e-6
    assert backend.span("prefill").parent == vendor.context


@pytest.mark.parametrize("family", ["httpx", "httpx2"])
@pytest.mark.parametrize("self_hosted", [True, False])
def test_with_an_http_instrumentation_the_header_names_its_span(
    backend: Backend, server: ScriptedServer, family: str, self_hosted: bool
) -> None:
    http = pytest.importorskip(family)
    instrumentation = pytest.importorskip("opentelemetry.instrumentation.httpx")
    kind = {"httpx": "HTTPXClientInstrumentor", "httpx2": "HTTPX2ClientInstrumentor"}[family]
    if not hasattr(instrumentation, kind):
        pytest.skip(f"this version has no {kind}")
    instrumentor = getattr(instrumentation, kind)
    server.play(reply(completion()))
    call = start_call(CallStart(provider="vllm", model="m"), backend.options())
    headers: dict[str, str] = {}
    call.inject(headers, self_hosted=self_hosted)
    with http.Client() as client:
        instrumentor.instrument_client(client, tracer_provider=backend.tracer_provider)
        with call.current():
            client.post(f"{server.url}/v1/chat/completions", json={}, headers=headers)
    call.finish(report())
    post = backend.span("POST")
    assert post.parent == backend.span("chat m").context
    sent = server.requests[0].headers["traceparent"]
    assert sent.split("-")[2] == f"{post.context.span_id:016x}"


@pytest.mark.parametrize("self_hosted", [True, False])
def test_without_one_the_header_names_ours_and_hosted_endpoints_get_none(
    backend: Backend, server: ScriptedServer, self_hosted: bool
) -> None:
    httpx = pytest.importorskip("httpx")
    server.play(reply(completion()))
    call = start_call(CallStart(provider="vllm", model="m"), backend.options())
    headers: dict[str, str] = {}
    token = context.attach(baggage.set_baggage("customer", "secret"))
    try:
        call.inject(headers, self_hosted=self_hosted)
        with httpx.Client() as client, call.current():
            client.post(f"{server.url}/v1/chat/completions", json={}, headers=headers)
    finally:
        context.detach(token)
    call.finish(report())
    seen = server.requests[0].headers
    assert "baggage" not in seen
    assert ("traceparent" in seen) is self_hosted
    if self_hosted:
        assert seen["traceparent"].split("-")[2] == f"{backend.span('chat m').context.span_id:016x}"


def test_langfuse_keeps_our_phase_spans() -> None:
    span_filter = pytest.importorskip("langfuse.span_filter")
    backend = Backend()
    call = start_call(CallStart(provider="groq", model="m"), backend.options())
    call.timeline.frame()
    timing = call.timeline.timing(Reading(), streamed=False)
    call.finish(report().model_copy(update={"timing": timing}))
    assert all(span_filter.is_default_export_span(span) for span in backend.finished())
