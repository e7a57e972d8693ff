"""How a span begins and ends: outcomes, events, sampling, and what telemetry does when it must do less."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from tracing_helpers import Backend, Clock, Reading, report_of, start, stream

from specclient.errors import RateLimitError
from specclient.tracing import ResponseFacts, start_call


@pytest.mark.parametrize(
    ("outcome", "error", "error_type", "status", "reasons"),
    [
        ("completed", None, None, StatusCode.UNSET, ("stop",)),
        ("closed_by_caller", None, None, StatusCode.UNSET, ("stop", "error")),
        ("cancelled", asyncio.CancelledError(), "CancelledError", StatusCode.ERROR, ("stop", "error")),
        ("error", RateLimitError("x", status_code=429), "429", StatusCode.ERROR, ("stop", "error")),
        ("error", ConnectionError("secret"), "ConnectionError", StatusCode.ERROR, ("stop", "error")),
        ("abandoned", None, "_OTHER", StatusCode.ERROR, ("stop", "error")),
    ],
)
def test_how_a_call_ended(
    backend: Backend,
    clock: Clock,
    outcome: Any,
    error: BaseException | None,
    error_type: str | None,
    status: StatusCode,
    reasons: tuple[str, ...],
) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    facts = ResponseFacts(finish_reasons=["stop", None])
    assert call.finish(report_of(call.timeline), facts, outcome, error)
    assert not call.finish(report_of(call.timeline), facts, "completed")
    span = backend.span("chat m")
    assert span.status.status_code is status
    assert span.attributes.get("error.type") == error_type
    assert span.attributes["gen_ai.response.finish_reasons"] == reasons
    assert span.attributes["specclient.stream.outcome"] == outcome
    assert "secret" not in span.to_json()


def test_the_stream_events_have_the_stamps_of_the_frames(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options(openinference_alias=True, langfuse_alias=True))
    stream(clock, call.timeline)
    call.finish(report_of(call.timeline, Reading()))
    span = backend.span("chat m")
    events = {event.name: event.timestamp - span.start_time for event in span.events}
    assert events == {
        "first_chunk": 305_000_000,
        "first_content": 405_000_000,
        "First Token Stream Event": 405_000_000,
    }
    assert span.attributes["openinference.span.kind"] == "LLM"
    assert backend.span("queue").attributes["openinference.span.kind"] == "CHAIN"
    assert span.attributes["langfuse.observation.completion_start_time"].startswith("2027-01-15T")


def test_sampling_can_decide_at_creation(clock: Clock) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult

    seen: list[dict[str, Any]] = []

    class Watching(Sampler):
        def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
            seen.append(dict(kwargs.get("attributes") or args[4]))
            return SamplingResult(Decision.DROP)

        def get_description(self) -> str:
            return ALWAYS_OFF.get_description()

    backend = Backend()
    backend.tracer_provider = TracerProvider(sampler=Watching())
    call = start_call(
        start(clock.timeline(), server_address="h", server_port=1, adapter="client"), backend.options()
    )
    stream(clock, call.timeline)
    call.finish(report_of(call.timeline, Reading()))
    assert [set(attributes) - {"specclient.version"} for attributes in seen] == [
        {
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "server.address",
            "server.port",
            "specclient.adapter",
        }
    ]


def test_the_span_is_current_only_inside(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    before = trace.get_current_span()
    with call.current():
        assert trace.get_current_span() is call.span
    assert trace.get_current_span() is before
    call.finish()


def test_a_fault_in_telemetry_never_reaches_the_caller(clock: Clock) -> None:
    class Broken:
        def get_tracer(self, *_: object, **__: object) -> Any:
            raise RuntimeError("no tracer")

    backend = Backend()
    backend.tracer_provider = Broken()  # type: ignore[assignment]
    call = start_call(start(clock.timeline()), backend.options())
    with call.current():
        call.inject({}, self_hosted=True)
    assert call.finish(report_of(call.timeline))


def test_off_is_off(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options(telemetry="off"))
    headers: dict[str, str] = {}
    call.inject(headers, self_hosted=True)
    assert call.finish(report_of(call.timeline))
    assert (backend.finished(), headers, backend.points()) == ((), {}, {})


def test_enrich_writes_onto_the_span_that_is_there(backend: Backend, clock: Clock) -> None:
    tracer = backend.tracer_provider.get_tracer("other")
    with tracer.start_as_current_span("vendor chat"):
        call = start_call(start(clock.timeline()), backend.options(telemetry="enrich"))
        stream(clock, call.timeline)
        call.finish(report_of(call.timeline, Reading()))
    assert backend.names() == ["decode", "prefill", "queue", "vendor chat"]
    vendor = backend.span("vendor chat")
    assert vendor.attributes["specclient.timing.prefill"] == 0.2
    assert backend.span("queue").parent == vendor.context
    points = backend.points()
    assert not [name for name in points if name.startswith("gen_ai.client")]  # the other one records these
    (prefill,) = points["specclient.server.prefill.duration"]
    assert prefill.sum == 0.2
    assert prefill.attributes["gen_ai.provider.name"] == "fireworks"
