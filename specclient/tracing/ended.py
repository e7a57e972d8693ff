"""A call at its end: what the tables of attributes and the metrics read of it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from specclient.core.stamps import NANOSECONDS, AttemptStamps
from specclient.report import Report
from specclient.tracing import names
from specclient.tracing.finaliser import CallOutcome

if TYPE_CHECKING:
    from specclient.tracing.call import Call
    from specclient.tracing.facts import ResponseFacts

SENT_OUTCOMES = frozenset({"forwarded", "local", "via_prompt", "via_corpus"})
REPORTED = frozenset({"server", "engine"})


class Ended:
    """A call at its end, with everything that the tables and the metrics read of it."""

    def __init__(
        self,
        call: Call,
        report: Report | None,
        facts: ResponseFacts,
        outcome: CallOutcome,
        error: BaseException | None,
    ) -> None:
        self.call = call
        self.report = report
        self.facts = facts
        self.outcome = outcome
        self.error = error

    @property
    def stamps(self) -> AttemptStamps:
        return self.call.timeline.attempt

    @cached_property
    def error_type(self) -> str | None:
        """Low-cardinality: a status code, a class name, or `_OTHER`; never a message."""
        if self.outcome in ("completed", "closed_by_caller"):
            return None
        if self.error is None:
            return "_OTHER"
        status = getattr(self.error, "status_code", None)
        return str(status) if isinstance(status, int) else type(self.error).__name__

    @cached_property
    def derived(self) -> dict[str, Any]:
        values = {
            "timing_source": self._timing_source(),
            "finish_reasons": self._finish_reasons(),
            "response_model": names.model_name(self.facts.model, in_process=self.call.start.in_process),
            "attempts": len(self.call.timeline.attempts) if len(self.call.timeline.attempts) > 1 else None,
            "backoff": sum(attempt.waited for attempt in self.call.timeline.attempts) or None,
            "openai": self._openai(),
        }
        if self.call.start.stream:
            values.update(self._stream())
        if self.report is not None:
            values.update(self._prediction(self.report))
            values["reported"] = self._reported(self.report)
            first = self.report.timing.time_to_first_token
            values["server_ttft"] = first.seconds if first is not None and first.source != "client" else None
        return values

    def roots(self) -> dict[str, Any]:
        return {"facts": self.facts, "report": self.report, "derived": self.derived}

    def _timing_source(self) -> str:
        timing = self.report.timing if self.report is not None else None
        phases = (timing.queue, timing.prefill, timing.decode, timing.time_to_first_token) if timing else ()
        sources = {phase.source for phase in phases if phase is not None}
        return next((name for name in ("engine", "server", "derived") if name in sources), "client")

    def _finish_reasons(self) -> tuple[str, ...] | None:
        given = tuple(self.facts.finish_reasons)
        if self.outcome == "completed":
            return tuple(reason for reason in given if reason) or None
        return tuple(reason or "error" for reason in given) or ("error",)

    def _openai(self) -> dict[str, Any] | None:
        if self.call.start.provider != "openai":
            return None
        return {
            "response_service_tier": self.facts.service_tier,
            "system_fingerprint": self.facts.system_fingerprint,
        }

    def _stream(self) -> dict[str, Any]:
        stamps, timeline = self.stamps, self.call.timeline
        first = stamps.first_content
        basis, value = time_per_output_token(stamps, self.facts)
        began = None if first is None else datetime.fromtimestamp(timeline.at(first) / NANOSECONDS, UTC)
        return {
            "chunks": stamps.frames,
            "content_chunks": stamps.content_frames,
            "max_gap": stamps.max_gap / NANOSECONDS if stamps.gaps else None,
            "stream_outcome": self.outcome,
            "tpot": value,
            "tpot_basis": basis,
            "completion_start_time": None if began is None else began.isoformat(),
        }

    def _prediction(self, report: Report) -> dict[str, Any]:
        prediction, speculation = report.prediction, report.speculation
        withheld = prediction.outcome == "withheld"
        counted = prediction.accepted_tokens is not None or prediction.rejected_tokens is not None
        drafted = speculation.draft_tokens if speculation is not None else prediction.drafted_tokens
        by_source = speculation.by_source if speculation is not None else None
        return {
            "requested": prediction.outcome != "none",
            "prediction_tokens": self.facts.prediction_tokens or self.call.start.prediction_tokens,
            "sent": prediction.outcome in SENT_OUTCOMES if prediction.outcome != "none" else None,
            "effect": prediction.effect if prediction.outcome != "none" else None,
            "withheld_reason": prediction.reasons[0].code if withheld and prediction.reasons else None,
            "counts_source": prediction.source if counted else None,
            "draft_tokens": drafted,
            "draft_sources": tuple(sorted(by_source)) if by_source else None,
        }

    def _reported(self, report: Report) -> dict[str, float]:
        timing = report.timing
        phases = {
            "queue": timing.queue,
            "prefill": timing.prefill,
            "decode": timing.decode,
            "ttft": timing.time_to_first_token,
        }
        return {
            name: phase.seconds
            for name, phase in phases.items()
            if phase is not None and phase.source in REPORTED
        }


def time_per_output_token(stamps: AttemptStamps, facts: ResponseFacts) -> tuple[str | None, float | None]:
    """Seconds per streamed token after the first, and by which count.

    (last content − first content) / (output tokens − tokens in the first frame); where the first frame's
    tokens are unknown they are taken as one and the basis says so. Nothing is computed when reasoning was
    counted but not streamed. A frame is one verification step, so frames are never counted as tokens.
    """
    first, last, total = stamps.first_content, stamps.last_content, facts.output_tokens
    if first is None or last is None or last <= first or not isinstance(total, int):
        return None, None
    if facts.reasoning_tokens and not stamps.saw_reasoning:
        return None, None
    known = facts.first_chunk_tokens
    tokens = total - (known if known is not None else 1)
    if tokens <= 0:
        return None, None
    basis = "tokens_after_first_chunk" if known is not None else "tokens_minus_one"
    return basis, (last - first) / NANOSECONDS / tokens
