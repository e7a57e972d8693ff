"""The record of one call: its targets, its tries, its spans, and the report that is made of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from specclient.core import account
from specclient.core.answer import Answer
from specclient.core.destination import Destination
from specclient.core.errors import request_id
from specclient.core.plan import Plan
from specclient.core.stamps import NANOSECONDS
from specclient.core.timeline import Timeline
from specclient.economics.gate import Decision
from specclient.report import Attempt, PredictionReport, Reason, Report, Speculation, Usage
from specclient.tracing import (
    Call,
    CallOutcome,
    CallStart,
    EnginePhases,
    Group,
    ResponseFacts,
    TracingOptions,
    start_call,
    start_group,
)
from specclient_providers import EndpointFacts, Reading

log = logging.getLogger("specclient")


class Ledger:
    """Kept by a `Flow`. One span over the chain of targets, one a target, and one `Attempt` a try."""

    def __init__(
        self, options: TracingOptions, *, targets: int, adapter: str, workload: str | None = None
    ) -> None:
        self.begun = time.perf_counter_ns()
        self.attempts: list[Attempt] = []
        self.notes: list[Reason] = []
        self.report: Report | None = None
        self.timeline = Timeline()
        self._options = options
        self._adapter = adapter
        self._workload = workload
        self._group: Group = start_group(options, targets=targets, timeline=self.timeline)
        self._call: Call | None = None
        self._destination: Destination | None = None
        self._plan: Plan | None = None
        self._try: tuple[int, float] | None = None
        self._failure: str | None = None
        self._decision: Decision | None = None

    @property
    def under_way(self) -> bool:
        """Whether a target is being asked."""
        return self._call is not None

    def note(self, code: str, text: str) -> None:
        self.notes.append(Reason(code=code, text=text))

    def considered(self, destination: Destination, plan: Plan) -> Plan:
        """The plan as the target's gate leaves it."""
        considered = destination.economist.consider(plan, self._workload)
        self._decision = considered.decision
        return considered.plan

    def target(self, destination: Destination, plan: Plan, *, streamed: bool) -> Call:
        """The call turns to a target."""
        if self._failure is not None:
            self._group.fell_back(destination.name, self._failure)
            self.timeline = self.timeline.successor()
        self._destination, self._plan = destination, plan
        host, port = destination.address
        known = plan.prediction
        self._call = start_call(
            CallStart(
                provider=plan.facts.telemetry_name,
                operation="chat" if plan.facts.api == "chat" else "text_completion",
                model=plan.facts.model,
                server_address=host,
                server_port=port,
                stream=streamed,
                body=plan.body,
                in_process=plan.facts.in_process,
                capability=capability(plan.facts),
                adapter=self._adapter,
                target=destination.name,
                workload=destination.economist.workload(self._workload),
                prediction_chars=None if known is None else len(known.text),
                prediction_tokens=plan.prediction_tokens,
                timeline=self.timeline,
            ),
            self._options,
            parent=self._group.context,
        )
        return self._call

    def replanned(self, plan: Plan) -> None:
        """The same target is asked differently (without the prediction that it refused)."""
        self._plan = plan

    def try_began(self, waited: float) -> None:
        self.timeline.attempt_started()
        self._try = (time.perf_counter_ns(), waited)

    def try_ended(self, status: int | None, error: BaseException | None = None) -> None:
        """Enter the try that is under way; does nothing when there is none."""
        if self._try is None or self._destination is None or self._plan is None:
            return
        started, waited = self._try
        self._try = None
        self.timeline.attempt_ended()
        self.attempts.append(
            Attempt(
                target=self._destination.name,
                provider=self._plan.facts.provider,
                model=self._plan.facts.model,
                status=status,
                error=None if error is None else type(error).__name__,
                seconds=(time.perf_counter_ns() - started) / NANOSECONDS,
                waited=waited,
            )
        )

    def finish(
        self,
        answer: Answer | None,
        outcome: CallOutcome,
        error: BaseException | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        stats: Any = None,
        first_tokens: int | None = None,
    ) -> Report | None:
        """End the span of the current target; the report as it stands. The first end of a target counts."""
        call, self._call = self._call, None
        if call is None:
            return self.report
        self.timeline.done()
        reading = Reading() if answer is None else answer.reading()
        name = request_id(headers or {}) or call.request_id
        report = self._report(reading, answer, name, stats)
        facts = ResponseFacts() if answer is None else answer.facts(reading)
        if stats is not None:
            facts.input_tokens, facts.output_tokens = stats.prompt_tokens, stats.completion_tokens
            facts.cached_tokens, facts.first_chunk_tokens = stats.cached_tokens, first_tokens
            facts.prediction_tokens = stats.prediction_tokens
        if self._destination is not None:
            completed = outcome == "completed"
            report = self._destination.economist.account(
                report, self._decision, completed=completed, workload=self._workload
            )
        call.finish(report, facts, outcome, error)
        self._failure = None if error is None else type(error).__name__
        self.report = self._over_all_targets(report)
        log.info(
            "%s: %s, prediction %s, %d tries, %.3f s%s",
            report.target,
            outcome if error is None else type(error).__name__,
            report.prediction.outcome,
            len(self.attempts),
            self.timeline.seconds(self.timeline.ended or self.timeline.started),
            f", changed: {', '.join(report.changed)}" if report.changed else "",
        )
        return self.report

    def close(self, error: BaseException | None = None) -> None:
        """End the span over the chain."""
        self._group.finish(error)

    def _report(self, reading: Reading, answer: Answer | None, name: str | None, stats: Any) -> Report:
        plan, destination = self._plan, self._destination
        assert plan is not None
        assert destination is not None
        phases: Any = reading
        if stats is not None:
            phases = EnginePhases(stats.submitted, stats.scheduled, stats.first_token, stats.finished)
        by_engine = stats is not None
        return Report.model_validate(
            {
                "target": destination.name,
                "provider": plan.facts.provider,
                "model": plan.facts.model,
                "attempts": self.attempts,
                "request_id": name,
                "prediction": _engine_prediction(plan, stats)
                if by_engine
                else account.prediction_data(plan, reading),
                "timing": self.timeline.timing_data(phases, streamed=answer is not None and answer.streamed),
                "usage": _engine_usage(stats) if by_engine else account.usage_data(reading),
                "speculation": _engine_speculation(stats) if by_engine else account.speculation_data(reading),
                "notes": (*self.notes, *plan.notes, *account.answer_notes(reading)),
            }
        )

    def _over_all_targets(self, report: Report) -> Report:
        """The report with its clock put back to the start of the call, where an earlier target failed."""
        before = (self.timeline.started - self.begun) / NANOSECONDS
        if before < 0.001 or len({attempt.target for attempt in self.attempts}) < 2:
            return report
        timing = report.timing
        shifted: dict[str, Any] = {}
        if timing.total is not None:
            shifted["total"] = timing.total.model_copy(update={"seconds": timing.total.seconds + before})
        for name in ("sent_at", "phases_at"):
            if (value := getattr(timing, name)) is not None:
                shifted[name] = value + before
        return report.model_copy(update={"timing": timing.model_copy(update=shifted)})


def capability(facts: EndpointFacts) -> str:
    """What the tables say of predictions at an endpoint, in the words of the spans."""
    if facts.in_process:
        return "engine"
    if facts.prediction.supported:
        return "documented"
    if facts.self_hosted:
        return "self_hosted"
    return "refused" if facts.prediction.state == "rejected" else "undocumented"


def _engine_usage(stats: Any) -> Usage:
    return Usage(prompt=stats.prompt_tokens, completion=stats.completion_tokens, cached=stats.cached_tokens)


def _engine_prediction(plan: Plan, stats: Any) -> PredictionReport:
    drafted, accepted = stats.by_source.get("prediction", (0, 0))
    local = plan.outcome == "local"
    return PredictionReport(
        outcome=plan.outcome,
        effect=("used" if accepted else "unused") if local else account.effect(plan, Reading()),
        reasons=plan.reasons,
        accepted_tokens=accepted if local else None,
        rejected_tokens=drafted - accepted if local else None,
        drafted_tokens=drafted if local else None,
        acceptance_rate=accepted / drafted if local and drafted else None,
        extra_billed_tokens=0 if local else None,
        source="engine" if local else None,
    )


def _engine_speculation(stats: Any) -> Speculation:
    drafted = sum(tried for tried, _ in stats.by_source.values())
    accepted = sum(hits for _, hits in stats.by_source.values())
    passes = stats.forward_passes
    return Speculation(
        forward_passes=passes,
        draft_tokens=drafted,
        accepted_draft_tokens=accepted,
        mean_acceptance_length=1 + accepted / passes if passes else None,
        by_source={name: (tried, hits) for name, (tried, hits) in stats.by_source.items()},
        draft_seconds=stats.drafting / NANOSECONDS,
        verify_seconds=stats.verifying / NANOSECONDS,
        held_back_tokens=stats.held_back,
        inactive_reason=stats.speculation_inactive,
    )
