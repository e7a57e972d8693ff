"""The gate against providers whose true gain is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulated import KNOWN, Clock, Provider, economist, plan, run

from specclient.economics.account import Economist
from specclient.economics.gate import draw
from specclient.economics.options import EconomicsOptions
from specclient.economics.state import MemoryStore


@pytest.mark.parametrize("gain", [0.6, 0.2, 0.03, 0.0, -0.03, -0.15, -1.0])
def test_it_ends_within_two_percent_of_the_best_policy(gain: float) -> None:
    provider, gate = Provider(gain, seed=3), economist(3, gate="auto")
    run(provider, gate, 1000)
    provider.spent, before = 0.0, provider.rng.getstate()
    run(provider, gate, 1000)
    spent = provider.spent

    provider.rng.setstate(before)
    best = 0.0
    for _ in range(1000):
        tokens = provider.rng.randint(50, 400)
        provider.rng.lognormvariate(0, 1)
        best += min(provider.true_cost(tokens, sent=sent) for sent in (True, False))
    assert spent / best - 1 < 0.02


@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_an_opinion_from_unlucky_calls_does_not_last(gain: float) -> None:
    """With twice the scatter, over several runs: on average well within two percent."""
    losses = []
    for seed in range(6):
        provider, gate = Provider(gain, seed=seed, scatter=0.6), economist(seed, gate="auto")
        run(provider, gate, 600)
        provider.sent = 0
        run(provider, gate, 600)
        wrong = provider.sent / 600 if gain < 0 else 1 - provider.sent / 600
        losses.append(wrong * abs(gain) / min(1, 1 - gain))
    assert sum(losses) / len(losses) < 0.02


def test_nothing_is_explored_that_was_not_allowed() -> None:
    provider, gate = Provider(-0.02, seed=3), economist(3, gate="auto", explore=0)
    run(provider, gate, 300)
    assert {gate.consider(plan()).decision.why for _ in range(100)} == {"evidence"}


def test_it_forgets_when_the_provider_changes() -> None:
    provider, gate = Provider(0.5, seed=1), economist(1, gate="auto")
    run(provider, gate, 800)
    provider.gain, provider.sent = -0.5, 0
    run(provider, gate, 800)
    late = provider.sent
    run(provider, gate, 400)
    assert late < 400
    assert provider.sent - late < 40

    provider.gain = 0.5
    run(provider, gate, 1200)
    before = provider.sent
    run(provider, gate, 400)
    assert provider.sent - before > 360


def test_old_evidence_is_forgotten_with_time() -> None:
    clock = Clock()
    provider, gate = Provider(-0.5, seed=1), economist(1, clock=clock, gate="auto", half_life_days=1)
    run(provider, gate, 200)
    assert gate.consider(plan()).decision.why in ("evidence", "explore")
    clock.now += 30 * 86_400
    assert gate.consider(plan()).decision.why == "measure"


@pytest.mark.parametrize(
    ("allowed", "mostly_sent"), [(None, True), (0.1, True), (0.001, False), (0.0, False)]
)
def test_seconds_may_cost_only_so_much(allowed: float | None, mostly_sent: bool) -> None:
    """Half an extra token a token, at 20 a million, for 3 ms: a saved second costs 0.0033."""
    provider = Provider(0.3, seed=2, extra=0.5)
    gate = economist(2, {"output": 20.0}, gate="auto", max_money_per_second=allowed)
    run(provider, gate, 300)
    provider.sent = 0
    run(provider, gate, 300)
    assert (provider.sent > 150) is mostly_sent


def test_the_reasons_tell_the_evidence() -> None:
    provider, gate = Provider(-0.5, seed=1), economist(1, gate="auto")
    assert gate.consider(plan()).plan.reasons[-1].code == "gate_measure"
    run(provider, gate, 300)
    withheld = next(
        considered.plan for _ in range(50) if (considered := gate.consider(plan())).decision.why == "evidence"
    )
    assert withheld.outcome == "withheld"
    assert withheld.reroute_local is False
    assert "prediction" not in withheld.body
    (reason,) = withheld.reasons
    assert reason.code == "gate_evidence"
    assert "more time: it is withheld." in reason.text

    provider, gate = Provider(0.5, seed=1), economist(1, gate="auto")
    run(provider, gate, 300)
    sent = next(
        considered.plan for _ in range(50) if (considered := gate.consider(plan())).decision.why == "evidence"
    )
    assert sent.outcome == "forwarded"
    assert "of the time: it is sent." in sent.reasons[-1].text


def test_never_and_always() -> None:
    never = economist(gate="never").consider(plan()).plan
    assert (never.outcome, never.reasons[0].code) == ("withheld", "gate_never")
    untouched = plan()
    assert economist(gate="always").consider(untouched).plan is untouched


def test_a_prediction_that_goes_nowhere_is_not_considered() -> None:
    withheld = economist(gate="never").consider(plan()).plan
    assert economist(gate="auto").consider(withheld).decision is None


@pytest.mark.parametrize(
    ("options", "provider", "chars", "short"),
    [
        ({"gate": "auto"}, "cerebras", 199, True),
        ({"gate": "auto"}, "cerebras", 200, False),
        ({"gate": "auto"}, "fireworks", 10, False),
        ({"gate": "always"}, "cerebras", 10, False),
        ({"gate": "always", "min_chars": 50}, "fireworks", 49, True),
        ({"gate": "auto", "min_chars": 0}, "cerebras", 10, False),
    ],
)
def test_too_short_predictions(options: dict[str, Any], provider: str, chars: int, short: bool) -> None:
    from specclient.economics.gate import decide
    from specclient.economics.options import EconomicsOptions

    decision = decide(EconomicsOptions(**options), {}, provider=provider, chars=chars, lot=1.0, chance=1.0)
    assert (decision.why == "short") is short
    if short:
        assert decision.reason.code == "prediction_too_short"


def test_the_holdout_is_by_hash_and_of_the_stated_share() -> None:
    gate = economist(holdout=0.2)
    plans = [gate.consider(plan(number)).plan for number in range(400)]
    held = [number for number, each in enumerate(plans) if each.outcome == "withheld"]
    assert 50 < len(held) < 110
    again = economist(seed=9, holdout=0.2)
    assert all(again.consider(plan(number)).plan.outcome == "withheld" for number in held)
    reason = plans[held[0]].reasons[0]
    assert (reason.code, "20%" in reason.text) == ("holdout", True)


def test_no_holdout_and_no_gate_by_default_keeps_nothing() -> None:
    gate = economist()
    (report,) = run(Provider(0.5), gate, 1)
    assert report.economics.gate == "always"
    assert report.economics.baseline is None
    assert report.economics.calls_sent is None  # nobody counts them
    assert isinstance(gate._store, MemoryStore)
    assert gate._store._known == {}


def test_lots_are_even_and_differ_by_the_prediction() -> None:
    lots = [draw(str(number), KNOWN) for number in range(2000)]
    assert 0.47 < sum(lots) / len(lots) < 0.53
    assert draw("a", "b") != draw("a", "c") != draw("ab", "")


def test_a_fault_in_the_account_costs_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def read(self, *_: object) -> object:
            raise ZeroDivisionError

        add = read

    gate = Economist("t", EconomicsOptions(gate="auto"), {}, store=Broken())  # type: ignore[arg-type]
    asked = plan()
    considered = gate.consider(asked)
    assert considered.plan is asked
    report = Provider(0.4).answer(considered.plan)
    assert gate.account(report, considered.decision, completed=True) == report
    assert "unweighed" in caplog.text
    assert "without its economics" in caplog.text


@pytest.mark.parametrize("route", ["auto", "never"])
def test_a_corpus_is_weighed_by_never_only(route: str) -> None:
    asked = replace(plan(), outcome="via_corpus")
    found = economist(gate=route).consider(asked).plan
    assert (found.outcome == "withheld") is (route == "never")
