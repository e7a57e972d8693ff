"""The sampler draws what its parameters say, from noise that nothing but (seed, position, id) decides."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_engine import SamplingParams
from specclient_engine.noise import gumbel
from specclient_engine.sampling import Sampler, logprobs, penalise, soften, survivors

LOGITS = np.array([2.0, 1.5, 1.0, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0, 2.2], dtype=np.float32)
DRAWS = 10_000


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
        return np.array([sampler.choose(LOGITS, position) for position in range(3_000)])

    p = expected(SamplingParams(temperature=1.0))
    by_chance = float((p**2).sum())
    first = draws(1)
    for other in (first[:-1], draws(2), draws(1 + 2**32), draws(2**63)):
        same = float((first[-len(other) :] == other).mean())
        assert same == pytest.approx(by_chance, abs=0.045)


def test_noise_depends_on_nothing_but_seed_position_and_id() -> None:
    ids = np.arange(1000)
    whole = gumbel(3, 5, ids)
    assert np.array_equal(whole[[7, 999]], gumbel(3, 5, np.array([7, 999])))
    assert not np.array_equal(whole, gumbel(3, 6, ids))
    assert not np.array_equal(whole, gumbel(4, 5, ids))
    many = gumbel(9, 1, np.arange(1_000_000))
    assert many.mean() == pytest.approx(0.5772, abs=0.01)
    assert many.std() == pytest.approx(math.pi / math.sqrt(6), abs=0.01)


def test_the_tail_of_a_large_vocabulary_is_drawn_as_often_as_it_weighs() -> None:
    # One likely token, and 50,000 that each weigh too little to be looked at one by one: 1 to 0.25.
    row = np.full(50_001, math.log(5e-6), dtype=np.float32)
    row[123] = 0.0
    sampler = Sampler(SamplingParams(temperature=1.0, seed=3), [])
    draws = [sampler.choose(row, position) for position in range(1_000)]
    tail = np.array([token for token in draws if token != 123])
    assert len(tail) / len(draws) == pytest.approx(0.2, abs=0.04)
    assert len(set(tail.tolist())) > len(tail) * 0.95
    assert tail.mean() == pytest.approx(25_000, rel=0.1)


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=50),
    st.integers(0, 10),
    st.sampled_from([1.0, 0.9, 0.2]),
    st.sampled_from([0.0, 0.01, 0.5]),
)
def test_survivors_are_those_of_the_book(row: list[float], top_k: int, top_p: float, min_p: float) -> None:
    params = SamplingParams(temperature=1.0, top_k=top_k, top_p=top_p, min_p=min_p)
    weights, _ = soften(np.array(row, dtype=np.float32), 1.0)
    ids = survivors(weights, params)
    alive = weights[ids]
    dead = np.delete(weights, ids)
    assert len(ids) >= 1
    assert (np.diff(alive) <= 0).all()
    assert not len(dead) or dead.max() <= alive.min()
    assert top_k == 0 or len(ids) <= top_k
    assert (alive >= min_p).all()
    rest = len(ids) < len(row) and not (top_k and len(ids) == top_k) and not (dead.max() < min_p)
    if rest:
        # Cut by top-p: without its last token the mass falls short, with it it suffices.
        pool = np.sort(weights.astype(float))[::-1][: top_k or None].sum()
        assert alive[:-1].sum() <= top_p * pool * (1 + 1e-6)
        assert alive.sum() >= top_p * pool * (1 - 1e-6)


def test_the_filters_keep_at_least_the_best() -> None:
    for params in ({"top_p": 0.0}, {"min_p": 1.0}, {"top_k": 1}):
        weights, _ = soften(LOGITS, 1.0)
        assert survivors(weights, SamplingParams(**params)).tolist() == [9]  # type: ignore[arg-type]


def test_penalties_by_hand() -> None:
    params = SamplingParams(repetition_penalty=2.0, presence_penalty=0.5, frequency_penalty=0.25)
    row = np.array([4.0, -4.0, 1.0, 1.0], dtype=np.float32)
    changed = penalise(row, Counter({0: 3, 2: 1}), np.array([0, 1, 2]), params)
    assert changed.tolist() == [2.0 - 0.5 - 0.75, -8.0, 0.5 - 0.5 - 0.25, 1.0]
    assert row.tolist() == [4.0, -4.0, 1.0, 1.0]


def test_repetition_counts_the_prompt_and_the_answer_each_token_once() -> None:
    row = np.array([4.0, 3.0, 2.5, 0.0], dtype=np.float32)
    sampler = Sampler(SamplingParams(repetition_penalty=2.0), [0, 0])
    assert sampler.choose(row, 0) == 1
    for _ in range(2):
        sampler.append(1)
        assert sampler.choose(row, 1) == 2
    sampler.append(2)
    assert sampler.choose(row, 2) == 0


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


def test_what_is_taken_again_weighs_again_by_frequency() -> None:
    """Presence counts a token once, frequency each time it was taken, a prompt's tokens in neither."""
    for params, after in (
        (SamplingParams(frequency_penalty=1.0), [0, 0, 1]),
        (SamplingParams(presence_penalty=1.0), [0, 0, 0]),
    ):
        sampler = Sampler(params, [0, 0, 0, 0])
        row = np.array([5.0, 3.5, 0.0], dtype=np.float32)
        chosen = []
        for position in range(3):
            chosen.append(sampler.choose(row, position))
            sampler.append(chosen[-1])
        assert chosen == after
