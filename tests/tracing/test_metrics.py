"""Which metrics a call records, under which names, with which dimensions."""

from __future__ import annotations

from typing import Any

import pytest
from tracing_helpers import Backend, Clock

from specclient.core.stamps import EnginePhases
from specclient.report import Economics, Estimate, Phase, PredictionReport, Reason, Report
from specclient.tracing import CallStart, ResponseFacts, start_call
from specclient.tracing.metrics import DURATION, TOKENS

FACTS = ResponseFacts(model="m-1", input_tokens=10, output_tokens=5, cached_tokens=4)


class Reading:
    queue = Phase(seconds=0.01, source="server")
    prefill = Phase(seconds=0.02, source="server")
    decode = Phase(seconds=0.02, source="derived")


def run(backend: Backend, clock: Clock, *, reading: Any = None, **rest: Any) -> dict[str, list[Any]]:
    start = {"provider": "groq", "model": "m", "stream": True, "server_address": "h", "server_port": 443}
    start |= rest.pop("start", {})
    call = start_call(CallStart(**start, timeline=clock.timeline()), backend.options())
    for _ in range(3):
        clock.advance(20)
        call.timeline.frame()
        call.timeline.content()
    prediction = rest.pop("prediction", PredictionReport())
    timing = call.timeline.timing(reading, streamed=True)
    report = Report(target="t", provider="groq", model="m", timing=timing, prediction=prediction)
    report = report.model_copy(update={"economics": rest.pop("economics", None)})
    call.finish(report, rest.pop("facts", FACTS), **rest)
    return backend.points()


STANDARD = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "groq",
    "gen_ai.request.model": "m",
    "gen_ai.response.model": "m-1",
    "server.address": "h",
    "server.port": 443,
}


def test_the_names_that_dashboards_read_today(backend: Backend, clock: Clock) -> None:
    points = run(backend, clock, reading=Reading())
    assert sorted(points) == [
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "specclient.client.time_per_output_token",
        "specclient.client.time_to_first_content",
        "specclient.server.decode.duration",
        "specclient.server.prefill.duration",
        "specclient.server.queue.duration",
    ]
    (duration,) = points["gen_ai.client.operation.duration"]
    assert dict(duration.attributes) == STANDARD
    assert duration.explicit_bounds == DURATION
    assert duration.sum == pytest.approx(0.06)
    (gaps,) = points["gen_ai.client.operation.time_per_output_chunk"]
    assert (gaps.count, gaps.sum) == (2, pytest.approx(0.04))
    usage = {point.attributes["gen_ai.token.type"]: point for point in points["gen_ai.client.token.usage"]}
    assert (usage["input"].sum, usage["output"].sum) == (10, 5)
    assert usage["input"].explicit_bounds == TOKENS == tuple(4**power for power in range(14))
    (queue,) = points["specclient.server.queue.duration"]
    assert dict(queue.attributes) == {
        "gen_ai.provider.name": "groq",
        "gen_ai.request.model": "m",
        "specclient.timing.source": "server",
    }
    (decode,) = points["specclient.server.decode.duration"]
    assert decode.attributes["specclient.timing.source"] == "derived"


def test_the_newer_names_instead_when_asked_for(
    backend: Backend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http, gen_ai_latest_experimental")
    points = run(backend, clock)
    assert sorted(name for name in points if name.startswith("gen_ai")) == [
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.operation.input_tokens",
        "gen_ai.client.inference.operation.output_tokens",
        "gen_ai.client.inference.time_per_output_chunk",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.usage.cache_read.input_tokens",
        "gen_ai.client.inference.usage.input_tokens",
        "gen_ai.client.inference.usage.output_tokens",
    ]
    (usage,) = points["gen_ai.client.inference.usage.output_tokens"]
    assert usage.value == 5
    assert usage.attributes["gen_ai.token.modality"] == "unknown"


def test_counts_that_are_not_known_are_no_zeros(backend: Backend, clock: Clock) -> None:
    points = run(backend, clock, facts=ResponseFacts())
    assert "gen_ai.client.token.usage" not in points
    assert "specclient.client.time_per_output_token" not in points


def test_a_plain_answer_has_no_chunk_metrics(backend: Backend, clock: Clock) -> None:
    call = start_call(CallStart(provider="p", timeline=clock.timeline()), backend.options())
    clock.advance(20)
    call.timeline.frame()
    timing = call.timeline.timing(None, streamed=False)
    call.finish(Report(target="t", provider="p", model=None, timing=timing))
    assert list(backend.points()) == ["gen_ai.client.operation.duration"]


def test_the_error_is_on_the_duration_only(backend: Backend, clock: Clock) -> None:
    points = run(backend, clock, outcome="error", error=TimeoutError())
    (duration,) = points["gen_ai.client.operation.duration"]
    assert duration.attributes["error.type"] == "TimeoutError"
    (first,) = points["gen_ai.client.operation.time_to_first_chunk"]
    assert "error.type" not in first.attributes


def withheld(code: str) -> PredictionReport:
    return PredictionReport(outcome="withheld", reasons=(Reason(code=code, text="x"),))


@pytest.mark.parametrize(
    ("prediction", "outcome", "tokens"),
    [
        (PredictionReport(), None, {}),
        (
            PredictionReport(outcome="withheld", reasons=(Reason(code="undocumented", text="x"),)),
            "withheld",
            {},
        ),
        (PredictionReport(outcome="withheld", reasons=(Reason(code="refused", text="x"),)), "refused", {}),
        (PredictionReport(outcome="forwarded"), "sent", {}),
        (
            PredictionReport(outcome="local", accepted_tokens=7, rejected_tokens=0),
            "sent",
            {"accepted": 7, "rejected": 0},
        ),
    ],
)
def test_predictions_are_counted(
    backend: Backend,
    clock: Clock,
    prediction: PredictionReport,
    outcome: str | None,
    tokens: dict[str, int],
) -> None:
    points = run(backend, clock, prediction=prediction)
    requests = points.get("specclient.prediction.requests", [])
    assert [point.attributes["outcome"] for point in requests] == ([outcome] if outcome else [])
    counted = points.get("specclient.prediction.tokens", [])
    assert {point.attributes["outcome"]: point.value for point in counted} == tokens


def test_what_a_prediction_saved_and_cost(backend: Backend, clock: Clock) -> None:
    saved = Estimate(mean=-0.5, low=-1.5, high=0.5)
    economics = Economics(baseline="holdout", seconds_saved=saved, money_added=0.002)
    points = run(backend, clock, economics=economics)
    by_bound = {
        point.attributes["bound"]: point.value for point in points["specclient.economics.seconds_saved"]
    }
    assert by_bound == {"mean": -0.5, "low": -1.5, "high": 0.5}
    (money,) = points["specclient.economics.money_added"]
    assert money.value == 0.002
    span = backend.span("chat m")
    assert span.attributes["specclient.economics.seconds_saved.low"] == -1.5
    assert span.attributes["specclient.economics.baseline"] == "holdout"


def test_server_metrics_are_for_the_engine_only(backend: Backend, clock: Clock) -> None:
    points = run(backend, clock, reading=Reading())
    assert not [name for name in points if name.startswith("gen_ai.server")]
    began = clock.now
    phases = EnginePhases(began, began + 1_000_000, began + 11_000_000, began + 51_000_000)
    points = run(backend, clock, reading=phases, start={"in_process": True})
    assert [name for name in sorted(points) if name.startswith("gen_ai.server")] == [
        "gen_ai.server.request.duration",
        "gen_ai.server.time_per_output_token",
        "gen_ai.server.time_to_first_token",
    ]
    assert points["gen_ai.server.time_per_output_token"][0].sum == pytest.approx(0.01)


def test_no_metric_holds_an_id_or_a_text(backend: Backend, clock: Clock) -> None:
    facts = ResponseFacts(id="id-sentinel", model="m-1", output_tokens=3)
    run(backend, clock, facts=facts, start={"body": {"user": "user-sentinel"}, "target": "customer"})
    told = backend.metrics.get_metrics_data().to_json()
    for word in ("id-sentinel", "user-sentinel", "customer"):
        assert word not in told


def test_metrics_are_recorded_for_calls_that_are_not_sampled(clock: Clock) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    backend = Backend()
    backend.tracer_provider = TracerProvider(sampler=ALWAYS_OFF)
    assert "gen_ai.client.operation.duration" in run(backend, clock)
    assert backend.finished() == ()
