"""The span tree of a call: its own span, its phases, its tries, and the span over a chain of targets."""

from __future__ import annotations

import pytest
from opentelemetry.trace import SpanKind, StatusCode
from tracing_helpers import Backend, Clock, Reading, report_of, start, stream

from specclient.core.stamps import EnginePhases
from specclient.report import Attempt, Report
from specclient.tracing import ResponseFacts, TracingOptions, start_call, start_group


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


def loaded_after_a_retry(clock: Clock, options: TracingOptions) -> Report:
    """A call of the engine whose second try begins 600 ms after the start, and loads for 7 s."""
    call = start_call(start(clock.timeline(), provider="local", in_process=True), options)
    call.timeline.attempt_started()
    clock.advance(600)
    call.timeline.attempt_started()
    clock.advance(7000)
    call.timeline.loaded()
    submitted = clock.now
    clock.advance(1)
    call.timeline.sent()
    clock.advance(89)
    call.timeline.frame()
    call.timeline.content()
    clock.advance(10)
    call.timeline.frame()
    call.timeline.content()
    call.timeline.done()
    phases = EnginePhases(submitted, submitted + 1_000_000, submitted + 90_000_000, submitted + 100_000_000)
    report = report_of(call.timeline, phases)
    call.finish(report)
    return report


@pytest.mark.parametrize("phases", ["reported", "all"])
def test_loading_the_engine_is_a_span_and_nobodys_unattributed_time(
    backend: Backend, clock: Clock, phases: str
) -> None:
    report = loaded_after_a_retry(clock, backend.options(phases=phases))
    assert backend.names() == ["attempt", "attempt", "chat m", "decode", "load", "prefill", "queue"]
    root, load = backend.span("chat m"), backend.span("load")
    assert load.parent == root.context
    assert load.start_time - root.start_time == 600_000_000
    assert load.end_time - root.start_time == 7_600_000_000
    assert load.attributes["specclient.timing.source"] == "client"
    assert backend.span("queue").start_time == load.end_time
    assert root.attributes["specclient.timing.load"] == 7.0
    assert str(root.attributes["specclient.timing.unattributed"]) == str(report.timing.unattributed) == "0.0"


def test_a_load_is_an_attribute_where_no_phases_are_wanted(backend: Backend, clock: Clock) -> None:
    loaded_after_a_retry(clock, backend.options(phases="none"))
    assert "load" not in backend.names()
    assert backend.span("chat m").attributes["specclient.timing.load"] == 7.0


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
    timeline = clock.timeline()
    group = start_group(options, targets=2, timeline=timeline)
    first = start_call(start(timeline, model="a"), options, parent=group.context)
    clock.advance(30)
    first.finish(outcome="error", error=ConnectionError())
    clock.wall_now -= 3600 * 10**9  # the wall clock is set back
    group.fell_back("local", "ConnectionError")
    second = start_call(start(timeline.successor(), model="b"), options, parent=group.context)
    clock.advance(20)
    second.finish()
    group.finish()
    over = backend.span("specclient.generate")
    assert over.kind is SpanKind.INTERNAL
    assert over.attributes["specclient.fallback.reason"] == "ConnectionError"
    assert backend.span("chat a").parent == over.context
    assert backend.span("chat b").parent == over.context
    places = {name: backend.span(name) for name in ("specclient.generate", "chat a", "chat b")}
    origin = over.start_time
    assert {n: ((s.start_time - origin) / 1e6, (s.end_time - origin) / 1e6) for n, s in places.items()} == {
        "specclient.generate": (0, 50),
        "chat a": (0, 30),
        "chat b": (30, 50),
    }


def test_a_single_target_has_no_span_over_it(backend: Backend, clock: Clock) -> None:
    timeline = clock.timeline()
    group = start_group(backend.options(), targets=1, timeline=timeline)
    start_call(start(timeline), backend.options(), parent=group.context).finish()
    group.finish()
    assert backend.names() == ["chat m"]
