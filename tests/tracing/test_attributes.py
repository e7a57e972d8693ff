"""Which attribute stands on a call's span when."""

from __future__ import annotations

from typing import Any

import pytest
from tracing_helpers import Backend, Clock, Reading, report_of, start, stream

from specclient.report import PredictionReport, Reason, Speculation
from specclient.tracing import ResponseFacts, start_call


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
