"""The arithmetic of speculation, against simulation and against the paper's own figures."""

from __future__ import annotations

import random

import pytest

from specclient.economics.speculation import best_gamma, expected_tokens, gain, round_cost


@pytest.mark.parametrize(("acceptance", "gamma"), [(0.5, 3), (0.8, 5), (0.95, 16), (0.0, 4), (1.0, 7)])
def test_expected_tokens_are_what_a_simulation_gives(acceptance: float, gamma: int) -> None:
    draws = random.Random(1)
    rounds = 40_000
    total = 0
    for _ in range(rounds):
        accepted = 0
        while accepted < gamma and draws.random() < acceptance:
            accepted += 1
        total += accepted + 1
    assert total / rounds == pytest.approx(expected_tokens(acceptance, gamma), rel=0.01)


@pytest.mark.parametrize(
    ("acceptance", "gamma", "speed"),
    [(0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 2, 2.44), (0.8, 5, 3.69), (0.9, 2, 2.71), (0.9, 10, 6.86)],
)
def test_the_gain_without_costs_is_table_1_of_the_paper(acceptance: float, gamma: int, speed: float) -> None:
    assert gain(acceptance, gamma) == pytest.approx(speed, abs=0.005)


def test_costs_divide_the_gain() -> None:
    assert gain(0.8, 5, cost_ratio=0.05) == pytest.approx(gain(0.8, 5) / 1.25)
    assert gain(0.8, 5, verify=2.0) == pytest.approx(gain(0.8, 5) / 2)


def test_the_best_length_is_none_where_drafting_loses() -> None:
    assert best_gamma(0.2, cost_ratio=0.5) == (0, 1.0)
    assert best_gamma(0.9, verify=lambda gamma: 1 + gamma) == (0, 1.0)


def test_the_best_length_is_the_best_of_all() -> None:
    length, best = best_gamma(0.8, cost_ratio=0.1)
    assert best == max(gain(0.8, gamma, 0.1) for gamma in range(1, 33)) == gain(0.8, length, 0.1)


def test_a_round_without_tokens_has_no_cost_per_token() -> None:
    assert round_cost(0.1, 0.2, 0.3, 3) == pytest.approx(0.2)
    assert round_cost(0.1, 0.2, 0.3, 0) is None


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        expected_tokens(1.2, 3)
    with pytest.raises(ValueError, match="0 tokens or more"):
        expected_tokens(0.5, -1)
