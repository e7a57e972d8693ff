"""The gate before a call, and the account after it."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from specclient.economics import state
from specclient.economics.evidence import DAY, Evidence, Interval, saved_in_call, saved_per_token
from specclient.economics.gate import ENOUGH, Decision, decide, draw
from specclient.economics.options import EconomicsOptions
from specclient.economics.prices import money_added
from specclient.economics.state import Arm, Store
from specclient.economics.stores import store_for
from specclient.prediction import Prediction
from specclient.report import Economics, Estimate, Report

if TYPE_CHECKING:
    from specclient.config import Target
    from specclient.core.plan import Plan

log = logging.getLogger("specclient.economics")

COMPARED = frozenset({"forwarded", "local", "via_prompt"})
MEASURES = ("phases", "client")
ARMS: tuple[Arm, Arm] = ("sent", "without")


@dataclass(frozen=True, slots=True)
class Considered:
    """A plan that went through the gate, and what was decided on the way (None: nothing was)."""

    plan: Plan
    decision: Decision | None = None


class Economist:
    """Weighs the predictions of one target. Safe for threads; keeps nothing but sums."""

    def __init__(
        self,
        target: str,
        options: EconomicsOptions,
        prices: Mapping[str, float],
        *,
        workload: str | None = None,
        store: Store | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = state.now,
    ) -> None:
        self.options = options
        self._target = target
        self._prices = prices
        self._workload = workload
        self._store = store or store_for(options.state)
        self._chance = chance
        self._clock = clock
        if options.max_money_per_second is not None and not {"output", "rejected"} & prices.keys():
            _warn_of_no_price(target)

    @classmethod
    def of(cls, target: Target) -> Economist:
        """The one of a configured target; its address belongs to its identity, since names are not unique."""
        return cls(cls.name_of(target), target.economics, target.prices, workload=target.tags.get("workload"))

    @staticmethod
    def name_of(target: Target) -> str:
        """Under which a target's evidence is kept."""
        return f"{target.name} {target.base_url}" if target.base_url else target.name

    def workload(self, named: str | None) -> str | None:
        """The workload of a call that names one, or names none."""
        return named or self._workload

    def consider(self, plan: Plan, workload: str | None = None) -> Considered:
        """The plan as the gate leaves it: unchanged, or without the prediction and with the reason.

        Only a prediction that would go somewhere is considered. One that is loaded into a corpus helps
        the calls without as well, so evidence cannot judge it: only "never" keeps it back.
        """
        if plan.outcome in ("withheld", "none") or plan.prediction is None:
            return Considered(plan)
        if plan.outcome == "via_corpus" and self.options.gate != "never":
            return Considered(plan)
        try:
            return self._weighed(plan, plan.prediction, workload)
        except Exception:
            log.warning("a prediction was sent unweighed: a fault in specclient")
            log.debug("the fault", exc_info=True)
            return Considered(plan)

    def _weighed(self, plan: Plan, prediction: Prediction, workload: str | None) -> Considered:
        options = self.options
        evidence: Mapping[Arm, Evidence] = {}
        if options.gate == "auto":
            _, evidence = self._evidence(plan.facts.model, MEASURES, workload)
        decision = decide(
            options,
            evidence,
            provider=plan.facts.provider,
            chars=len(prediction.text),
            lot=_lot(plan) if options.holdout else 1.0,
            chance=self._chance(),
        )
        if decision.send:
            if decision.reason is not None:
                plan = replace(plan, reasons=(*plan.reasons, decision.reason))
            return Considered(plan, decision)
        assert decision.reason is not None
        bare = plan.without_prediction(decision.reason)
        return Considered(replace(bare, reroute_local=False), decision)

    def account(
        self, report: Report, decision: Decision | None, *, completed: bool, workload: str | None = None
    ) -> Report:
        """The report with its economics; a completed call becomes evidence. Never raises."""
        try:
            return self._accounted(report, decision, completed, workload)
        except Exception:
            log.warning("a call ended without its economics: a fault in specclient")
            log.debug("the fault", exc_info=True)
            return report

    @property
    def keeps_no_account(self) -> bool:
        """Whether neither evidence nor prices say more of a call than what was decided before it."""
        return not (self.options.watches or self._prices)

    @property
    def is_decided(self) -> bool:
        """Whether the gate decides the same for every prediction."""
        options = self.options
        return options.gate == "always" and not options.holdout and options.min_chars is None

    def _accounted(
        self, report: Report, decision: Decision | None, completed: bool, workload: str | None
    ) -> Report:
        arm = _arm(report, decision)
        if arm is None:
            if decision is None:
                return report
            told = Economics(gate=self.options.gate, decision=decision.why)
            return report.model_copy(update={"economics": told})
        tokens, measured = _visible_tokens(report), _measured(report)
        extra = money_added(report, self._prices)
        if completed and self.options.watches and tokens:
            for who, seconds in measured.items():
                self._learn(self._key(report.model, who, workload), arm, tokens, seconds, extra)
        economics = self._economics(report, decision, arm, tokens, measured, extra, workload)
        return report.model_copy(update={"economics": economics})

    def _learn(self, key: str, arm: Arm, tokens: int, seconds: float, extra: float | None) -> None:
        now, options = self._clock(), self.options

        def change(before: Evidence) -> Evidence:
            kept = before.faded(now, half_life=options.half_life_days * DAY, memory=options.memory)
            return kept.with_call(tokens, seconds, extra or 0.0)

        self._store.add(key, arm, change, now, options.half_life_days)

    def _economics(
        self,
        report: Report,
        decision: Decision | None,
        arm: Arm,
        tokens: int | None,
        measured: Mapping[str, float],
        extra: float | None,
        workload: str | None,
    ) -> Economics:
        found = Economics(
            gate=self.options.gate,
            decision=None if decision is None else decision.why,
            money_added=extra if arm == "sent" else None,
        )
        if not measured or not tokens:
            return found
        who = next(iter(measured))
        evidence: Mapping[Arm, Evidence] = {}
        if self.options.watches:
            who, evidence = self._evidence(report.model, measured, workload)
        sent, without = (evidence.get(each, Evidence()) for each in ARMS)
        update: dict[str, Any] = {}
        if self.options.watches:
            # Old calls count less, also those of a second ago: digits beyond these say nothing.
            update |= {"calls_sent": round(sent.calls, 3), "calls_without": round(without.calls, 3)}
        if without.calls >= ENOUGH and sent.calls >= ENOUGH:
            update["seconds_saved_per_token"] = _estimate(saved_per_token(without, sent))
        if arm == "sent" and without.calls >= ENOUGH:
            update["baseline"] = "holdout"
            update["seconds_saved"] = _estimate(saved_in_call(without, tokens, measured[who]))
        elif arm == "sent" and (reported := saved_as_reported(report)) is not None:
            update["baseline"] = "reported"
            update["seconds_saved"] = Estimate(mean=reported)
        return found.model_copy(update=update)

    def _evidence(
        self, model: str | None, measures: Iterable[str], workload: str | None
    ) -> tuple[str, Mapping[Arm, Evidence]]:
        """Who measured, and the evidence: the first of `measures` that has enough of both kinds of call, or
        the last one."""
        now, half_life = self._clock(), self.options.half_life_days
        found: Mapping[Arm, Evidence] = {}
        who = ""
        for who in measures:
            found = self._store.read(self._key(model, who, workload), now, half_life)
            if all(arm in found and found[arm].calls >= ENOUGH for arm in ARMS):
                break
        return who, found

    def _key(self, model: str | None, who: str, workload: str | None) -> str:
        return json.dumps([self._target, model, self.workload(workload), who], ensure_ascii=False)


@lru_cache(maxsize=1024)
def _warn_of_no_price(target: str) -> None:
    """Once a target: some doors make its economist anew for every call."""
    log.warning("max_money_per_second of %s has no effect without prices.output", target)


def _arm(report: Report, decision: Decision | None) -> Arm | None:
    """Which kind of call it was; None for one that says nothing about the prediction's worth."""
    if report.prediction.outcome in COMPARED:
        return "sent"
    if decision is None or decision.send or decision.why in ("never", "short"):
        return None
    return "without"


def _lot(plan: Plan) -> float:
    """The request's own number, from what it asks and what it expects."""
    asked = json.dumps(plan.request.get("messages") or plan.request.get("prompt"), default=str)
    return draw(asked, plan.prediction.text if plan.prediction is not None else "")


def _visible_tokens(report: Report) -> int | None:
    """Tokens of the answer itself: those billed for a rejected draft are none."""
    billed = report.usage.completion
    if billed is None:
        return None
    visible = billed - (report.prediction.extra_billed_tokens or 0)
    return visible if visible > 0 else None


def _measured(report: Report) -> dict[str, float]:
    """Who measured the time of the answer, best first, and its seconds.

    Waiting in a queue has nothing to do with the prediction and is left out where it is known.
    """
    timing, found = report.timing, {}
    if timing.prefill is not None and timing.decode is not None:
        found["phases"] = timing.prefill.seconds + timing.decode.seconds
    client = timing.client
    parts = (client.await_headers, client.await_content, client.receive)
    known = [part for part in parts if part is not None]
    if known and sum(known) > 0:
        found["client"] = sum(known)
    return found


def saved_as_reported(report: Report) -> float | None:
    """Seconds that the server's own counters imply: one plain pass for each token instead of the passes that
    it took. An upper bound, since a pass that verifies a draft costs at least a plain one.

    For the embedded engine nothing: on a CPU a pass over a long draft costs many plain ones, and the bound
    would say nothing.
    """
    decode, speculation = report.timing.decode, report.speculation
    tokens = _visible_tokens(report)
    if decode is None or decode.source == "engine" or not tokens:
        return None
    if speculation is None or not speculation.forward_passes:
        return None
    return max(decode.seconds * (tokens / speculation.forward_passes - 1), 0.0)


def _estimate(interval: Interval) -> Estimate:
    return Estimate(mean=interval.mean, low=interval.low, high=interval.high)
