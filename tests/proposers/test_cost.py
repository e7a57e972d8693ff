"""The cost curve: fitted, read between its knots, refined, written down."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.api import Draft
from specclient_engine.cost import STALE, CostCurve
from specclient_engine.cost_fit import fit_curve
from specclient_engine.draft_length import DraftLengthPolicy


def test_between_knots_the_curve_is_linear_and_beyond_it_goes_on() -> None:
    curve = CostCurve([2, 4, 8], [1.0, 2.0, 6.0])
    assert [curve.seconds(rows, 0) for rows in (1, 2, 3, 4, 6, 8, 10)] == [1, 1, 1.5, 2, 4, 6, 8]


def test_context_costs_for_the_pass_and_for_each_row() -> None:
    assert CostCurve([1], [1.0], 0.01, 0.001).seconds(2, 100) == pytest.approx(2.0 + 1.0 + 0.2 - 1.0 + 1.0)


def test_the_reference_line_has_its_floor() -> None:
    curve = CostCurve.linear(16.0, 11.5, 0.63)
    assert [curve.seconds(rows, 0) for rows in (1, 7, 8, 65)] == pytest.approx([16, 16, 16.54, 52.45])


@given(st.floats(1e-4, 1.0), st.floats(1e-6, 1e-2), st.floats(0.0, 1e-5), st.floats(0.0, 1e-6))
def test_a_fit_gives_back_the_curve_that_the_samples_came_from(
    base: float, per_row: float, per_context: float, per_row_context: float
) -> None:
    def true(rows: int, context: int) -> float:
        return base + per_row * rows + context * (per_context + per_row_context * rows)

    points = [(rows, 0) for rows in (1, 4, 16, 64)] + [(1, 1024), (64, 1024)]
    samples = [(r, c, true(r, c) * noise) for r, c in points for noise in (1.0, 1.4)]
    curve = fit_curve(samples)
    for rows, context in ((1, 0), (10, 500), (64, 2000), (100, 100)):
        assert curve.seconds(rows, context) == pytest.approx(true(rows, context), rel=1e-3)


def serve(curve: CostCurve, rows: int, seconds: float, times: int) -> None:
    for _ in range(times):
        curve.observe(rows, 0, seconds)


def test_serving_moves_the_curve_and_one_stall_does_not() -> None:
    curve = CostCurve([1, 8, 64], [1.0, 1.0, 4.0])
    serve(curve, 8, 2.0, 100)
    assert curve.seconds(8, 0) == pytest.approx(2.0, rel=0.01)
    serve(curve, 64, 4.0, 2)
    curve.observe(64, 0, 4000.0)
    assert curve.seconds(64, 0) < 6.0


def test_a_busy_machine_makes_every_pass_slower() -> None:
    curve = CostCurve([1, 8, 64], [1.0, 1.0, 4.0])
    serve(curve, 8, 1.0, 1)
    serve(curve, 64, 4.0, 1)
    for slowness in (3.0, 1.0):
        serve(curve, 64, 4.0 * slowness, 50)
        assert curve.seconds(64, 0) == pytest.approx(4.0 * slowness, rel=0.02)
        # About half of what happened is put down to the machine: 8 rows were not seen meanwhile.
        assert curve.seconds(8, 0) == pytest.approx(slowness**0.5, rel=0.15)


def test_a_cost_that_is_only_a_belief_is_replaced_by_the_first_that_is_paid() -> None:
    curve = CostCurve([1, 8, 64], [1.0, 1.0, 10.0])
    assert [curve.probe(rows) for rows in (1, 7, 8, 64, 100)] == [8, 8, 64, None, None]
    curve.observe(64, 0, 4.0)
    assert curve.seconds(64, 0) == pytest.approx(4.0)
    assert curve.probe(8) is None
    serve(curve, 8, 1.0, STALE)
    assert curve.probe(8) == 64


def test_a_curve_from_a_busy_moment_does_not_keep_drafts_short() -> None:
    """Everything is accepted: the policy must find out that long passes are cheap, at little cost."""

    def true(rows: int) -> float:
        return max(1.0, 0.5 + 0.05 * rows)

    knots = [1, 2, 4, 8, 16, 32, 64, 129]
    curve = CostCurve(knots, [true(rows) * (3 if rows > 8 else 1) for rows in knots])
    policy = DraftLengthPolicy(curve)
    draft = Draft(tokens=(7,) * 128, sources=("prediction",) * 128, confidence=(0.98,) * 128)

    def expected(length: int) -> float:
        return sum(0.98**i for i in range(length + 1))

    best = max(expected(length) / true(length + 1) for length in range(129))
    tokens, seconds = 0.0, 0.0
    for _ in range(100):
        length = policy.choose([(draft, 0)])[0]
        curve.observe(length + 1, 0, true(length + 1))
        tokens += expected(length)
        seconds += true(length + 1)
    assert tokens / seconds > 0.93 * best


def test_unlikely_drafts_are_not_used_to_try_costs() -> None:
    curve = CostCurve([1, 2, 8], [1.0, 1.5, 4.0])
    draft = Draft(tokens=(7,) * 10, sources=("suffix",) * 10, confidence=(0.3,) * 10)
    assert {DraftLengthPolicy(curve).choose([(draft, 0)])[0] for _ in range(200)} == {0}


def test_more_context_than_was_measured_stays_above_zero() -> None:
    curve = fit_curve([(1, 0, 1.0), (1, 100, 0.9), (8, 0, 2.0), (8, 100, 1.8)])
    assert curve.seconds(1, 100_000) > 0


def test_a_curve_survives_being_written_down() -> None:
    curve = CostCurve([1, 9], [0.5, 0.75], 1e-6, 1e-8)
    again = CostCurve.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert again.seconds(20, 300) == curve.seconds(20, 300)


@pytest.mark.parametrize(
    ("rows", "costs"), [([], []), ([1], [1.0, 2.0]), ([2, 2], [1.0, 1.0]), ([0], [1.0]), ([1], [0.0])]
)
def test_nonsense_is_refused(rows: list[int], costs: list[float]) -> None:
    with pytest.raises(ValueError, match="cost"):
        CostCurve(rows, costs)


def test_other_data_is_refused() -> None:
    with pytest.raises(ValueError, match="measure the machine again"):
        CostCurve.from_dict({"rows": [1]})
    with pytest.raises(ValueError, match="at least one"):
        fit_curve([])
