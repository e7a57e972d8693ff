"""The sampler draws what its parameters say, from noise that nothing but (seed, position, id) decides."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_engine import SamplingParams
from specclient_engine.noise import GUMBEL_SPREAD, gumbel
from specclient_engine.sampling import Sampler, logprobs, penalise, survivors

LOGITS = np.array([2.0, 1.5, 1.0, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0, 2.2], dtype=np.float32)
DRAWS = 40_000


def expected(params: SamplingParams, row: np.ndarray = LOGITS) -> np.ndarray:
    """The distribution by the book: one filter after the other, each renormalised."""
    p = np.exp(row.astype(float) / params.temperature)
    p /= p.sum()
    if params.top_k:
        p[np.argsort(-p)[params.top_k :]] = 0
        p /= p.sum()
    order = np.argsort(-p)
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= params.top_p]] = 0
    p /= p.sum()
    p[p < params.min_p * p.max()] = 0
    return p / p.sum()


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 1.0},
        {"temperature": 0.5},
        {"temperature": 2.0, "top_k": 4},
        {"temperature": 1.0, "top_p": 0.8},
        {"temperature": 1.3, "min_p": 0.3},
        {"temperature": 1.5, "top_k": 7, "top_p": 0.9, "min_p": 0.1},
    ],
    ids=str,
)
def test_the_draws_follow_the_distribution(params: dict[str, float]) -> None:
    wanted = SamplingParams(**params, seed=7)  # type: ignore[arg-type]
    sampler = Sampler(wanted, [])
    counts = Counter(sampler.choose(LOGITS, position) for position in range(DRAWS))
    p = expected(wanted)
    assert not any(counts[token] for token in range(len(p)) if p[token] == 0)
    alive = np.flatnonzero(p)
    observed = np.array([counts[int(token)] for token in alive])
    chi_square = (((observed - DRAWS * p[alive]) ** 2) / (DRAWS * p[alive])).sum()
    # Ten times the spread of chi-square around its mean.
    freedom = max(1, len(alive) - 1)
    assert chi_square < freedom + 10 * math.sqrt(2 * freedom)


def test_draws_at_neighbouring_positions_and_seeds_are_independent() -> None:
    def draws(seed: int) -> np.ndarray:
        sampler = Sampler(SamplingParams(temperature=1.0, seed=seed), [])
        return np.array([sampler.choose(LOGITS, position) for position in range(5_000)])

    p = expected(SamplingParams(temperature=1.0))
    by_chance = float((p**2).sum())
    first = draws(1)
    for other in (first[:-1], draws(2), draws(1 + 2**32), draws(2**63)):
        same = float((first[-len(other) :] == other).mean())
        assert same == pytest.approx(by_chance, abs=0.035)


def test_noise_depends_on_nothing_but_seed_position_and_id() -> None:
    ids = np.arange(1000)
    whole = gumbel(3, 5, ids)
    assert np.array_equal(whole[[7, 999]], gumbel(3, 5, np.array([7, 999])))
    assert not np.array_equal(whole, gumbel(3, 6, ids))
    assert not np.array_equal(whole, gumbel(4, 5, ids))
    many = gumbel(9, 1, np.arange(1_000_000))
    assert many.max() - many.min() < GUMBEL_SPREAD
    assert many.mean() == pytest.approx(0.5772, abs=0.01)
    assert many.std() == pytest.approx(math.pi / math.sqrt(6), abs=0.01)


@given(
    st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=50),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.integers(0, 10),
)
def test_leaving_out_hopeless_tokens_changes_no_draw(row: list[float], temperature: float, seed: int) -> None:
    logits = np.array(row, dtype=np.float32)
    sampler = Sampler(SamplingParams(temperature=temperature, seed=seed), [])
    ids = np.arange(len(row))
    for position in range(5):
        scores = logits.astype(float) / temperature + gumbel(seed, position, ids)
        assert sampler.choose(logits, position) == int(np.argmax(scores))


def test_the_filters_keep_at_least_the_best() -> None:
    for params in ({"top_p": 0.0}, {"min_p": 1.0}, {"top_k": 1}):
        ids, _ = survivors(LOGITS, SamplingParams(temperature=1.0, **params))  # type: ignore[arg-type]
        assert ids.tolist() == [9]


def test_penalties_by_hand() -> None:
    params = SamplingParams(repetition_penalty=2.0, presence_penalty=0.5, frequency_penalty=0.25)
    row = np.array([4.0, -4.0, 1.0, 1.0], dtype=np.float32)
    changed = penalise(row, Counter({0: 3, 2: 1}), {0, 1, 2}, params)
    assert changed.tolist() == [2.0 - 0.5 - 0.75, -8.0, 0.5 - 0.5 - 0.25, 1.0]
    assert row.tolist() == [4.0, -4.0, 1.0, 1.0]


def test_greedy_takes_the_first_of_equals_and_heeds_the_bias() -> None:
    row = np.array([1.0, 3.0, 3.0, 2.0], dtype=np.float32)
    assert Sampler(SamplingParams(), []).choose(row, 0) == 1
    assert Sampler(SamplingParams(logit_bias={3: 1.5}), []).choose(row, 0) == 3
    assert Sampler(SamplingParams(logit_bias={1: -100}), []).choose(row, 0) == 2


def test_logprobs_are_those_before_the_filters() -> None:
    token, others = logprobs(LOGITS, 3, 2)
    p = expected(SamplingParams(temperature=1.0))
    assert token.logprob == pytest.approx(math.log(p[3]))
    assert [(o.token_id, o.logprob) for o in others] == [
        (9, pytest.approx(math.log(p[9]))),
        (0, pytest.approx(math.log(p[0]))),
    ]
    assert logprobs(LOGITS, 3, 0)[1] == ()
