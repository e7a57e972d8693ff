"""The span tree of a call, and which attribute stands on it when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from tracing_helpers import Backend, Clock

from specclient.core.timeline import EnginePhases, Timeline
from specclient.errors import RateLimitError
from specclient.report import (
    Attempt,
    Phase,
    PredictionReport,
    Reason,
    Report,
    Speculation,
)
from specclient.tracing import CallStart, ResponseFacts, start_call, start_group


class Reading:
    """What an endpoint said of its time."""

    queue = Phase(seconds=0.1, source="server")
    prefill = Phase(seconds=0.2, source="server")
    decode = Phase(seconds=0.6, source="derived")
    time_to_first_token = Phase(seconds=0.3, source="server")
    server_total = Phase(seconds=0.91, source="server")
    ttft_includes_queue = True


def stream(clock: Clock, timeline: Timeline) -> None:
    """Role frame after 305 ms, content after 405 and 1005 ms."""
    timeline.attempt_started()
    clock.advance(5)
    timeline.sent()
    clock.advance(200)
    timeline.headers()
    clock.advance(100)
    timeline.frame()
    clock.advance(100)
    timeline.frame()
    timeline.content()
    clock.advance(600)
    timeline.frame()
    timeline.content()
    timeline.done()


def report_of(timeline: Timeline, reading: Any = None, **rest: Any) -> Report:
    return Report(
        target="prod",
        provider="fireworks",
        model="m",
        timing=timeline.timing(reading, streamed=True),
        **rest,
    )


def start(timeline: Timeline, **rest: Any) -> CallStart:
    given: dict[str, Any] = {"provider": "fireworks", "model": "m", "stream": True, "timeline": timeline}
    return CallStart(**{**given, **rest})


def test_the_tree_of_a_call_with_reported_phases(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    stream(clock, call.timeline)
    call.finish(report_of(call.timeline, Reading()))

    assert backend.names() == ["chat m", "decode", "prefill", "queue"]
    root = backend.span("chat m")
    assert root.kind is SpanKind.CLIENT
    assert root.parent is None
    assert root.status.status_code is StatusCode.UNSET
    origin = root.start_time
    assert origin == clock.wall_now
    assert root.end_time == origin + 1_005_000_000
    places = {"queue": (105, 205), "prefill": (205, 405), "decode": (405, 1005)}
    for name, (begin, end) in places.items():
        span = backend.span(name)
        assert span.parent == root.context
        assert span.kind is SpanKind.INTERNAL
        assert (span.start_time - origin, span.end_time - origin) == (begin * 10**6, end * 10**6)
    assert dict(backend.span("decode").attributes) == {
        "specclient.phase": "decode",
        "specclient.timing.source": "derived",
        "gen_ai.provider.name": "fireworks",
    }


def test_every_own_attribute_of_a_full_call(backend: Backend, clock: Clock) -> None:
    body = {
        "model": "m",
        "stream": True,
        "seed": 7,
        "n": 2,
        "top_k": 40,
        "max_completion_tokens": 100,
        "temperature": 1,
        "top_p": 0.9,
        "frequency_penalty": 0.5,
        "presence_penalty": 0,
        "stop": ["a", "b"],
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {}},
    }
    call = start_call(
        start(
            clock.timeline(),
            body=body,
            server_address="api.example",
            server_port=443,
            capability="documented",
            adapter="client",
            target="prod",
            workload="edits",
            prediction_chars=1200,
            prediction_tokens=300,
        ),
        backend.options(),
    )
    stream(clock, call.timeline)
    facts = ResponseFacts(
        id="r1",
        model="m-2026",
        finish_reasons=["stop", "length"],
        input_tokens=50,
        output_tokens=61,
        cached_tokens=0,
        cache_write_tokens=3,
        reasoning_tokens=0,
        first_chunk_tokens=1,
    )
    report = report_of(
        call.timeline,
        Reading(),
        request_id="req-9",
        prediction=PredictionReport(
            outcome="forwarded",
            effect="used",
            accepted_tokens=40,
            rejected_tokens=0,
            acceptance_rate=1.0,
            extra_billed_tokens=0,
            source="provider_usage",
        ),
        speculation=Speculation(
            forward_passes=20,
            draft_tokens=60,
            accepted_draft_tokens=40,
            mean_acceptance_length=3.0,
            by_source={"prediction": (50, 40), "suffix": (10, 0)},
        ),
    )
    call.finish(report, facts)
    attributes = dict(backend.span("chat m").attributes)
    version = attributes.pop("specclient.version")
    assert version
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "fireworks",
        "gen_ai.request.model": "m",
        "server.address": "api.example",
        "server.port": 443,
        "specclient.adapter": "client",
        "gen_ai.request.stream": True,
        "gen_ai.request.seed": 7,
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.top_k": 40,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.temperature": 1.0,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.frequency_penalty": 0.5,
        "gen_ai.request.presence_penalty": 0.0,
        "gen_ai.request.stop_sequences": ("a", "b"),
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.output.type": "json",
        "specclient.capability.prediction": "documented",
        "specclient.target": "prod",
        "specclient.workload": "edits",
        "specclient.prediction.chars": 1200,
        "specclient.prediction.tokens": 300,
        "gen_ai.response.id": "r1",
        "gen_ai.response.model": "m-2026",
        "gen_ai.response.finish_reasons": ("stop", "length"),
        "gen_ai.response.time_to_first_chunk": 0.305,
        "gen_ai.usage.input_tokens": 50,
        "gen_ai.usage.output_tokens": 61,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.cache_write.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 0,
        "specclient.timing.source": "server",
        "specclient.timing.queue": 0.1,
        "specclient.timing.prefill": 0.2,
        "specclient.timing.decode": 0.6,
        "specclient.timing.server_total": 0.91,
        "specclient.timing.server_ttft": 0.3,
        "specclient.timing.queue_wait_included": True,
        "specclient.timing.anchor": "first_content",
        "specclient.timing.unattributed": pytest.approx(0.1),
        "specclient.timing.consistent": True,
        "specclient.timing.time_to_headers": 0.2,
        "specclient.timing.time_to_first_content": 0.405,
        "specclient.timing.time_to_first_answer": 0.405,
        "specclient.tpot": pytest.approx(0.01),
        "specclient.tpot.basis": "tokens_after_first_chunk",
        "specclient.stream.chunks": 3,
        "specclient.stream.content_chunks": 2,
        "specclient.stream.max_gap": 0.6,
        "specclient.stream.outcome": "completed",
        "specclient.request_id": "req-9",
        "specclient.prediction.requested": True,
        "specclient.prediction.sent": True,
        "specclient.prediction.outcome": "forwarded",
        "specclient.prediction.effect": "used",
        "specclient.prediction.accepted_tokens": 40,
        "specclient.prediction.rejected_tokens": 0,
        "specclient.prediction.acceptance_rate": 1.0,
        "specclient.prediction.extra_billed_tokens": 0,
        "specclient.prediction.counts_source": "provider_usage",
        "specclient.speculation.steps": 20,
        "specclient.speculation.draft_tokens": 60,
        "specclient.speculation.accepted_draft_tokens": 40,
        "specclient.speculation.mean_acceptance_length": 3.0,
        "specclient.speculation.draft_sources": ("prediction", "suffix"),
        "gen_ai.latency.time_in_queue": 0.1,
        "gen_ai.latency.time_in_model_prefill": 0.2,
        "gen_ai.latency.time_to_first_token": 0.3,
    }
    decode = dict(backend.span("decode").attributes)
    assert decode["specclient.speculation.steps"] == 20
    assert "specclient.speculation.steps" not in backend.span("prefill").attributes


def test_what_is_not_known_is_absent(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline(), model=None, stream=False, body={"n": 1}), backend.options())
    clock.advance(10)
    call.finish()
    span = backend.span("chat")
    assert sorted(span.attributes) == [
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "specclient.timing.source",
        "specclient.version",
    ]
    assert span.attributes["specclient.timing.source"] == "client"
    assert not span.events


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("seed", "7", "gen_ai.request.seed"),
        ("seed", True, "gen_ai.request.seed"),
        ("temperature", "hot", "gen_ai.request.temperature"),
        ("temperature", float("nan"), "gen_ai.request.temperature"),
        ("stop", [1, 2], "gen_ai.request.stop_sequences"),
        ("stop", [], "gen_ai.request.stop_sequences"),
        ("top_k", 1.5, "gen_ai.request.top_k"),
        ("n", [2], "gen_ai.request.choice.count"),
        ("response_format", "json", "gen_ai.output.type"),
        ("response_format", {"type": ["json"]}, "gen_ai.output.type"),
        ("max_tokens", {}, "gen_ai.request.max_tokens"),
    ],
)
def test_a_value_of_the_wrong_type_sets_nothing(
    backend: Backend, clock: Clock, field: str, value: Any, name: str
) -> None:
    call = start_call(start(clock.timeline(), body={field: value}), backend.options())
    call.finish()
    assert name not in backend.span("chat m").attributes


def test_the_openai_names_are_for_openai_only(backend: Backend, clock: Clock) -> None:
    facts = ResponseFacts(service_tier="flex", system_fingerprint="fp")
    for provider, model in (("openai", "ours"), ("groq", "theirs")):
        body = {"service_tier": "auto"}
        call = start_call(
            start(clock.timeline(), provider=provider, model=model, body=body), backend.options()
        )
        call.finish(None, facts)
    ours = backend.span("chat ours").attributes
    assert ours["openai.request.service_tier"] == "auto"
    assert ours["openai.response.service_tier"] == "flex"
    assert ours["openai.response.system_fingerprint"] == "fp"
    assert not [name for name in backend.span("chat theirs").attributes if name.startswith("openai.")]


def test_phases_that_do_not_fit_are_attributes_and_no_spans(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    clock.advance(50)
    call.timeline.frame()
    call.timeline.content()
    call.finish(report_of(call.timeline, Reading()))
    assert backend.names() == ["chat m"]
    attributes = backend.span("chat m").attributes
    assert attributes["specclient.timing.consistent"] is False
    assert attributes["specclient.timing.prefill"] == 0.2
    assert "specclient.timing.anchor" not in attributes


def test_client_only_parts_have_names_of_their_own_and_only_on_request(
    backend: Backend, clock: Clock
) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    stream(clock, call.timeline)
    call.finish(report_of(call.timeline))
    assert backend.names() == ["chat m"]
    backend.spans.clear()

    call = start_call(start(clock.timeline()), backend.options(phases="all"))
    stream(clock, call.timeline)
    call.finish(report_of(call.timeline))
    assert backend.names() == ["await_content", "await_headers", "chat m", "receive"]
    origin = backend.span("chat m").start_time
    receive = backend.span("receive")
    assert (receive.start_time - origin, receive.end_time - origin) == (405_000_000, 1_005_000_000)
    assert receive.attributes["specclient.timing.source"] == "client"


def test_no_phases_when_none_are_wanted(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options(phases="none"))
    stream(clock, call.timeline)
    call.finish(report_of(call.timeline, Reading()))
    assert backend.names() == ["chat m"]


def test_the_engine_in_this_process(backend: Backend, clock: Clock) -> None:
    timeline = clock.timeline()
    call = start_call(
        start(timeline, provider="specclient", in_process=True, capability="engine"), backend.options()
    )
    timeline.attempt_started()
    submitted = clock.now + 1_000_000
    phases = EnginePhases(submitted, submitted + 2_000_000, submitted + 102_000_000, submitted + 502_000_000)
    clock.advance(105)
    timeline.frame()
    timeline.content()
    clock.advance(400)
    timeline.done()
    report = report_of(timeline, phases).model_copy(update={"provider": "local"})
    call.finish(report, ResponseFacts(output_tokens=41))
    root = backend.span("chat m")
    assert root.kind is SpanKind.INTERNAL
    assert root.attributes["specclient.timing.source"] == "engine"
    assert root.attributes["specclient.timing.anchor"] == "engine_clock"
    prefill, decode = backend.span("prefill"), backend.span("decode")
    assert prefill.end_time == decode.start_time == root.start_time + 103_000_000
    assert prefill.attributes["specclient.timing.source"] == "engine"
    wall = sum(span.end_time - span.start_time for span in (backend.span("queue"), prefill, decode))
    assert wall == 502_000_000
    assert backend.points()["gen_ai.server.request.duration"][0].sum == pytest.approx(0.502)


def test_each_try_is_a_child_only_when_there_were_several(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    timeline = call.timeline
    timeline.attempt_started()
    clock.advance(100)
    timeline.attempt_ended()
    timeline.waited(0.5)
    clock.advance(500)
    stream(clock, timeline)
    attempts = (
        Attempt(
            target="prod", provider="fireworks", model="m", status=429, error="RateLimitError", seconds=0.1
        ),
        Attempt(target="prod", provider="fireworks", model="m", status=200, seconds=1.0, waited=0.5),
    )
    call.finish(report_of(timeline, Reading(), attempts=attempts))
    root = backend.span("chat m")
    first, second = (span for span in backend.finished() if span.name == "attempt")
    assert first.attributes["specclient.attempt"] == 1
    assert first.attributes["error.type"] == "RateLimitError"
    assert first.attributes["http.response.status_code"] == 429
    assert first.status.status_code is StatusCode.ERROR
    assert first.end_time - root.start_time == 100_000_000
    assert second.attributes["specclient.attempt.waited"] == 0.5
    assert second.start_time - root.start_time == 600_000_000
    assert second.status.status_code is StatusCode.UNSET
    assert root.attributes["specclient.retry.attempts"] == 2
    assert root.attributes["specclient.retry.backoff"] == 0.5
    assert root.attributes["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.305)
    assert backend.span("queue").start_time - root.start_time == 705_000_000


def test_a_chain_of_targets_has_one_span_over_it(backend: Backend, clock: Clock) -> None:
    options = backend.options()
    group = start_group(options, targets=2)
    first = start_call(start(clock.timeline(), model="a"), options, parent=group.context)
    first.finish(outcome="error", error=ConnectionError())
    group.fell_back("local", "ConnectionError")
    second = start_call(start(clock.timeline(), model="b"), options, parent=group.context)
    second.finish()
    group.finish()
    over = backend.span("specclient.generate")
    assert over.kind is SpanKind.INTERNAL
    assert over.attributes["specclient.fallback.reason"] == "ConnectionError"
    assert backend.span("chat a").parent == over.context
    assert backend.span("chat b").parent == over.context


def test_a_single_target_has_no_span_over_it(backend: Backend, clock: Clock) -> None:
    group = start_group(backend.options(), targets=1)
    start_call(start(clock.timeline()), backend.options(), parent=group.context).finish()
    group.finish()
    assert backend.names() == ["chat m"]


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


def test_the_aliases_that_backends_sum_up_are_off(backend: Backend, clock: Clock) -> None:
    prediction = PredictionReport(outcome="forwarded", accepted_tokens=3, rejected_tokens=1)
    facts = ResponseFacts(cache_write_tokens=5)
    for model, options in (
        ("off", backend.options(latency_aliases=False)),
        ("on", backend.options(usage_aliases=True, cache_creation_alias=True)),
    ):
        call = start_call(start(clock.timeline(), model=model), options)
        stream(clock, call.timeline)
        call.finish(report_of(call.timeline, Reading(), prediction=prediction), facts)
    off, on = backend.span("chat off").attributes, backend.span("chat on").attributes
    assert not [name for name in off if name.startswith(("gen_ai.latency", "gen_ai.usage.details"))]
    assert "gen_ai.usage.cache_creation.input_tokens" not in off
    assert on["gen_ai.usage.details.accepted_prediction_tokens"] == 3
    assert on["gen_ai.usage.details.rejected_prediction_tokens"] == 1
    assert on["gen_ai.usage.cache_creation.input_tokens"] == 5


def test_a_withheld_prediction_says_why_by_code(backend: Backend, clock: Clock) -> None:
    reason = Reason(code="undocumented", text="No source documents it.", source="https://example")
    prediction = PredictionReport(outcome="withheld", reasons=(reason,))
    call = start_call(start(clock.timeline()), backend.options())
    call.finish(report_of(call.timeline, prediction=prediction))
    attributes = backend.span("chat m").attributes
    assert attributes["specclient.prediction.requested"] is True
    assert attributes["specclient.prediction.sent"] is False
    assert attributes["specclient.prediction.withheld_reason"] == "undocumented"


@pytest.mark.parametrize(
    ("facts", "basis", "value"),
    [
        (ResponseFacts(output_tokens=60, first_chunk_tokens=4), "tokens_after_first_chunk", 0.0112),
        (ResponseFacts(output_tokens=60), "tokens_minus_one", 0.0106),
        (ResponseFacts(output_tokens=60, reasoning_tokens=10), None, None),
        (ResponseFacts(output_tokens=4, first_chunk_tokens=4), None, None),
        (ResponseFacts(), None, None),
    ],
)
def test_time_per_token_divides_by_tokens_not_by_frames(
    backend: Backend, clock: Clock, facts: ResponseFacts, basis: str | None, value: float | None
) -> None:
    """Twenty verification steps of 33 ms for 60 tokens, 4 of them in the first frame."""
    call = start_call(start(clock.timeline()), backend.options())
    for _ in range(20):
        clock.advance(33)
        call.timeline.frame()
        call.timeline.content()
    call.finish(report_of(call.timeline), facts)
    attributes = backend.span("chat m").attributes
    assert attributes.get("specclient.tpot.basis") == basis
    assert attributes.get("specclient.tpot") == (None if value is None else pytest.approx(value, abs=5e-5))
    if basis is not None:
        per_token = backend.points()["specclient.client.time_per_output_token"][0]
        assert per_token.attributes["basis"] == basis


def test_streamed_reasoning_counts_for_time_per_token(backend: Backend, clock: Clock) -> None:
    call = start_call(start(clock.timeline()), backend.options())
    call.timeline.content(answer=False)
    clock.advance(90)
    call.timeline.frame()
    call.timeline.content()
    call.finish(report_of(call.timeline), ResponseFacts(output_tokens=10, reasoning_tokens=4))
    assert backend.span("chat m").attributes["specclient.tpot"] == pytest.approx(0.01)


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
    assert backend.points() == {}
