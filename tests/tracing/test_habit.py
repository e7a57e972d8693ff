"""An acceptance far below this workload's habit is an event on the span."""

from __future__ import annotations

from tracing_helpers import Backend

from specclient.report import PredictionReport, Report
from specclient.tracing import CallStart, start_call
from specclient.tracing.habit import WARM_UP, Habits


def test_a_drop_after_a_habit() -> None:
    habits = Habits()
    rates = [0.9, 0.85, 0.95] * 4
    assert [habits.observe(("t", "m", None), rate) for rate in rates] == [None] * len(rates)
    usual = habits.observe(("t", "m", None), 0.1)
    assert usual is not None
    assert 0.85 < usual < 0.95


def test_no_habit_before_enough_calls() -> None:
    habits = Habits()
    for _ in range(WARM_UP - 1):
        assert habits.observe(("t", "m", None), 0.9) is None
    assert habits.observe(("t", "m", None), 0.0) is None


def test_a_workload_that_is_always_uneven_is_not_reported() -> None:
    habits = Habits()
    assert not any(habits.observe(("t", "m", None), rate) for rate in [0.9, 0.1] * 20)


def test_workloads_are_kept_apart_and_forgotten_by_disuse() -> None:
    habits = Habits(limit=2)
    for _ in range(20):
        habits.observe(("a", None, None), 0.9)
        habits.observe(("b", None, None), 0.1)
    assert habits.observe(("b", None, None), 0.1) is None
    assert habits.observe(("a", None, None), 0.1) is not None
    habits.observe(("c", None, None), 0.5)
    assert habits.observe(("b", None, None), 0.0) is None


def test_the_event_on_the_span(backend: Backend) -> None:
    for rate in [0.9] * WARM_UP + [0.2]:
        call = start_call(CallStart(provider="p", model="m", workload="w"), backend.options())
        prediction = PredictionReport(outcome="forwarded", acceptance_rate=rate)
        call.finish(Report(target="t", provider="p", model="m", prediction=prediction))
    *usual, last = backend.finished()
    assert not any(span.events for span in usual)
    (event,) = last.events
    assert event.name == "specclient.acceptance_drop"
    assert event.attributes["specclient.prediction.acceptance_rate"] == 0.2
    assert abs(event.attributes["specclient.acceptance.usual"] - 0.9) < 1e-9
