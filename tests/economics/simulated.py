"""A simulated provider whose true gain is known."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from specclient.core.plan import build_plan
from specclient.economics.account import Economist
from specclient.economics.options import EconomicsOptions
from specclient.economics.state import MemoryStore
from specclient.report import ClientTiming, PredictionReport, Report, Timing, Usage
from specclient_providers import resolve

KNOWN = "def foo():\n    return 1\n" * 20
FACTS = resolve("fireworks", model="accounts/fireworks/models/m")


@dataclass
class Provider:
    """Answers of 50 to 400 tokens at `rate` seconds a token without a prediction, with scatter.

    With one each token takes (1 - gain) of that, and `extra` tokens a visible one are billed on top.
    """

    gain: float
    seed: int = 0
    rate: float = 0.01
    scatter: float = 0.3
    extra: float = 0.0
    spent: float = 0.0
    calls: int = 0
    sent: int = 0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def true_cost(self, tokens: int, *, sent: bool) -> float:
        """Expected seconds."""
        return tokens * self.rate * (1 - self.gain if sent else 1)

    def answer(self, plan: Any) -> Report:
        sent = plan.outcome == "forwarded"
        tokens = self.rng.randint(50, 400)
        self.spent += self.true_cost(tokens, sent=sent)
        self.calls += 1
        self.sent += sent
        seconds = self.true_cost(tokens, sent=sent) * self.rng.lognormvariate(
            -(self.scatter**2) / 2, self.scatter
        )
        extra = round(tokens * self.extra) if sent else None
        return Report(
            target="t",
            provider="fireworks",
            model=plan.facts.model,
            prediction=PredictionReport(
                outcome=plan.outcome, reasons=plan.reasons, extra_billed_tokens=extra
            ),
            timing=Timing(client=ClientTiming(await_headers=seconds)),
            usage=Usage(completion=tokens + (extra or 0)),
        )


@dataclass
class Clock:
    now: float = 1.8e9

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def economist(seed: int = 0, prices: Any = None, clock: Any = None, **options: Any) -> Economist:
    return Economist(
        "t",
        EconomicsOptions(**options),
        prices or {},
        store=MemoryStore(),
        chance=random.Random(seed + 1000).random,
        clock=clock or Clock(),
    )


def plan(number: int = 0, known: str = KNOWN) -> Any:
    messages = [{"role": "user", "content": f"edit {number}"}]
    request = {
        "model": FACTS.model,
        "messages": messages,
        "prediction": {"type": "content", "content": known},
    }
    return build_plan(request, facts=FACTS)


def run(provider: Provider, economist: Economist, calls: int, *, distinct: bool = False) -> list[Report]:
    """Calls one after another: of the same request, or with `distinct` each of its own."""
    reports = []
    same = plan()
    for number in range(calls):
        considered = economist.consider(plan(number) if distinct else same)
        report = provider.answer(considered.plan)
        reports.append(economist.account(report, considered.decision, completed=True))
    return reports
