"""The estimates cover the truth as often as they say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from simulated import Provider, economist, plan, run

from specclient.economics.evidence import Evidence, saved_in_call, saved_per_token, t_probability, t_quantile
from specclient.economics.prices import money_added
from specclient.report import Estimate, Phase, PredictionReport, Report, Speculation, Timing, Usage


def evidence(provider: Provider, calls: int, *, sent: bool) -> Evidence:
    found = Evidence()
    for _ in range(calls):
        tokens = provider.rng.randint(50, 400)
        seconds = provider.true_cost(tokens, sent=sent) * provider.rng.lognormvariate(-0.045, 0.3)
        found = found.with_call(tokens, seconds)
    return found


@pytest.mark.parametrize(("gain", "held_out"), [(0.4, 12), (0.4, 60), (-0.2, 30), (0.0, 30)])
def test_the_interval_of_the_gain_covers_the_truth(gain: float, held_out: int) -> None:
    covered = 0
    for seed in range(300):
        provider = Provider(gain, seed=seed)
        without, sent = evidence(provider, held_out, sent=False), evidence(provider, 200, sent=True)
        found = saved_per_token(without, sent)
        covered += found.low <= gain * provider.rate <= found.high
    assert 0.90 <= covered / 300 <= 0.99


def test_the_interval_of_one_call_covers_what_it_would_have_taken() -> None:
    covered = 0
    for seed in range(400):
        provider = Provider(0.4, seed=seed)
        without = evidence(provider, 40, sent=False)
        otherwise = provider.true_cost(225, sent=False) * provider.rng.lognormvariate(-0.045, 0.3)
        found = saved_in_call(without, 225, 1.35)
        covered += found.low <= otherwise - 1.35 <= found.high
    assert 0.90 <= covered / 400 <= 0.99


def test_the_report_gives_the_workloads_gain_with_its_uncertainty() -> None:
    provider = Provider(0.4, seed=1)
    reports = run(provider, economist(1, {"output": 10.0}, holdout=0.3), 400, distinct=True)
    last = [report for report in reports if report.prediction.outcome == "forwarded"][-1].economics
    assert last.baseline == "holdout"
    assert last.decision == "always"
    gain = last.seconds_saved_per_token
    assert gain.low <= 0.004 <= gain.high
    assert gain.high - gain.low < 0.002
    assert last.seconds_saved.low < last.seconds_saved.mean < last.seconds_saved.high
    held = [report for report in reports if report.prediction.outcome == "withheld"][-1].economics
    assert held.decision == "holdout"
    assert held.seconds_saved is None
    assert held.calls_without > 50


@pytest.mark.parametrize(("source", "baseline"), [("server", "reported"), ("engine", None)])
def test_without_a_holdout_a_servers_counters_are_the_baseline(source: Any, baseline: str | None) -> None:
    provider = Provider(0.4)
    report = run(provider, economist(), 1)[0].model_copy(
        update={
            "timing": Timing(
                prefill=Phase(seconds=0.1, source=source), decode=Phase(seconds=2.0, source=source)
            ),
            "speculation": Speculation(forward_passes=50),
            "usage": Usage(completion=200),
        }
    )
    found = economist().account(report, None, completed=True).economics
    assert found.baseline == baseline
    saved = None if baseline is None else Estimate(mean=6.0)
    assert found.seconds_saved == saved


def test_a_failed_call_is_no_evidence() -> None:
    provider, gate = Provider(0.4), economist(gate="auto")
    for _ in range(5):
        considered = gate.consider(plan())
        report = gate.account(provider.answer(considered.plan), considered.decision, completed=False)
    assert report.economics.calls_sent == 0


def test_calls_are_counted_in_digits_that_say_something() -> None:
    """One that is a second old counts 0.9999999 of a call, which reads like a fault."""
    counted = [report.economics.calls_sent for report in run(Provider(0.4), economist(gate="auto"), 5)]
    assert counted[0] == 1.0
    assert counted == [round(calls, 3) for calls in counted]


@pytest.mark.parametrize(
    ("extra", "prices", "money"),
    [
        (1000, {"output": 10.0}, 0.01),
        (1000, {"output": 10.0, "rejected": 2.0}, 0.002),
        (0, {"output": 10.0}, 0.0),
        (None, {"output": 10.0}, None),
        (1000, {"input": 1.0}, None),
        (1000, {}, None),
    ],
)
def test_money_is_known_only_where_counts_and_prices_are(
    extra: int | None, prices: dict[str, float], money: float | None
) -> None:
    prediction = PredictionReport(outcome="forwarded", extra_billed_tokens=extra)
    report = Report(target="t", provider="p", model="m", prediction=prediction)
    assert money_added(report, prices) == (None if money is None else pytest.approx(money))


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.975, 5, 2.571), (0.975, 10, 2.228), (0.975, 30, 2.042), (0.975, 1e6, 1.960), (0.95, 8, 1.860)],
)
def test_students_quantiles(probability: float, freedom: float, value: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=0.01)
    assert t_probability(value, freedom) == pytest.approx(probability, abs=0.002)


def test_fading_keeps_rates_and_loses_weight() -> None:
    rng = random.Random(1)
    found = Evidence(updated=100.0)
    for _ in range(50):
        found = found.with_call(rng.randint(1, 9), rng.random())
    old = found.faded(100.0 + 3600, half_life=3600)
    assert old.rate == pytest.approx(found.rate)
    assert old.n == pytest.approx(found.n / 2)
    assert old.calls == pytest.approx(25)
    remembered = Evidence()
    for _ in range(2000):
        remembered = remembered.faded(0, half_life=1, memory=50).with_call(1, 1)
    assert 45 < remembered.calls <= 50
