"""Draft lengths: the best expected rate by the cost curve, for one request and for many."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.api import Draft
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy

FLAT = CostCurve([1, 64, 128], [1.0, 1.0, 2.0])
CONFIDENCES = st.lists(st.floats(0.01, 1.0), max_size=8)


def draft(confidence: list[float]) -> Draft:
    return Draft(tuple(range(len(confidence))), ("suffix",) * len(confidence), tuple(confidence))


def rate(requests: list[list[float]], lengths: tuple[int, ...], cost: CostCurve) -> float:
    expected = 0.0
    for confidence, length in zip(requests, lengths, strict=True):
        survival, total = 1.0, 1.0
        for value in confidence[:length]:
            survival *= value
            total += survival
        expected += total
    return expected / cost.seconds(sum(lengths) + len(lengths), 0)


@given(st.lists(CONFIDENCES, min_size=1, max_size=3), st.floats(0.0, 0.5))
def test_no_other_lengths_would_be_better(requests: list[list[float]], slope: float) -> None:
    cost = CostCurve([1, 100], [1.0, 1.0 + 99 * slope])
    chosen = tuple(DraftLengthPolicy(cost).choose([(draft(c), 0) for c in requests]))
    best = max(
        rate(requests, other, cost) for other in itertools.product(*(range(len(c) + 1) for c in requests))
    )
    assert rate(requests, chosen, cost) >= best - 1e-9


def test_free_rows_are_used_and_dear_rows_are_not() -> None:
    assert DraftLengthPolicy(FLAT).choose([(draft([0.05] * 10), 0)]) == [10]
    steep = CostCurve([1, 2, 64], [1.0, 2.0, 64.0])
    # What was never paid is tried once, where it is likely to be right.
    assert DraftLengthPolicy(steep).choose([(draft([0.9] * 10), 0)]) == [1]
    steep.observe(2, 0, 2.0)
    assert DraftLengthPolicy(steep).choose([(draft([0.9] * 10), 0)]) == [0]


def test_rows_go_to_whoever_gains_most() -> None:
    cost = CostCurve([1, 8, 9, 100], [1.0, 1.0, 50.0, 5000.0])
    assert DraftLengthPolicy(cost).choose([(draft([0.9] * 9), 0), (draft([0.3] * 9), 0)]) == [6, 0]


def test_nothing_drafted_and_nobody_there() -> None:
    policy = DraftLengthPolicy(FLAT)
    assert policy.choose([]) == []
    assert policy.choose([(draft([]), 5)]) == [0]


def test_the_bound_on_rows_holds_for_the_whole_batch() -> None:
    policy = DraftLengthPolicy(FLAT, max_rows=10)
    assert sum(policy.choose([(draft([0.9] * 20), 0), (draft([0.9] * 20), 0)])) == 8
    assert DraftLengthPolicy(FLAT, max_rows=1).choose([(draft([0.9]), 0), (draft([0.9]), 0)]) == [0, 0]
