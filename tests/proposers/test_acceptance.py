"""Rates and weights: smoothed, forgetting, shared, and written down."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.proposers import AcceptanceTable
from specclient_engine.proposers.acceptance import MEMORY, bucket
from specclient_engine.proposers.blend import Blend, log_odds


def test_a_new_key_starts_from_its_prior_or_its_shorter_key() -> None:
    table = AcceptanceTable({("copy", 3): 0.9})
    assert table.rate(("copy", 3)) == pytest.approx(0.9)
    assert table.rate(("copy", 3, 1)) == pytest.approx(0.9)
    assert table.rate(("copy", 4)) == table.rate(("copy",))


def test_a_rate_follows_what_happens_and_forgets_what_happened() -> None:
    table = AcceptanceTable({})
    for _ in range(int(2 * MEMORY)):
        table.update(("copy", 1), True)
    assert table.rate(("copy", 1)) > 0.99
    for _ in range(int(MEMORY)):
        table.update(("copy", 1), False)
    assert table.rate(("copy", 1)) < 0.55


def test_what_is_learnt_of_one_key_helps_its_sisters() -> None:
    table = AcceptanceTable({})
    for _ in range(20):
        table.update(("copy", 1), True)
    assert table.rate(("copy", 2)) > 0.7


def test_a_table_survives_being_written_down() -> None:
    table = AcceptanceTable()
    for hit in (True, False, True):
        table.update(("cursor against suffix", 3, 4), hit)
    features = (0.5, 1.0, 0.0)
    believed = table.blend.probability("cursor", features)
    table.blend.update("cursor", features, believed, True)
    again = AcceptanceTable.from_dict(json.loads(json.dumps(table.to_dict())))
    assert again.to_dict() == table.to_dict()


@pytest.mark.parametrize(
    "data", [{}, {"counts": {"a": [2, 1]}, "blend": {}}, {"counts": {}, "blend": {"a": [1]}}]
)
def test_other_data_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="delete the saved table"):
        AcceptanceTable.from_dict(data)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_buckets_keep_the_order(one: int, other: int) -> None:
    assert (bucket(one) <= bucket(other)) or one > other
    assert 0 <= bucket(one) <= 12


@given(st.floats(0, 1), st.floats(0, 50), st.floats(0, 50), st.lists(st.booleans(), max_size=300))
def test_a_belief_is_a_probability_whatever_was_learnt(
    rate: float, support: float, rival: float, outcomes: list[bool]
) -> None:
    blend = Blend()
    features = (log_odds(rate), min(support, 8.0), rival)
    for hit in outcomes:
        blend.update("a", features, blend.probability("a", features), hit)
    assert 0.0 < blend.probability("a", features) < 1.0


def test_a_kind_that_is_always_wrong_is_believed_less_and_less() -> None:
    blend = Blend()
    features = (1.0, 2.0, 0.0)
    before = blend.probability("a", features)
    for _ in range(300):
        blend.update("a", features, blend.probability("a", features), False)
    assert blend.probability("a", features) < before / 2
