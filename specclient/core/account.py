"""What a plan and an answer's figures say together: the prediction's part of the report."""

from __future__ import annotations

from specclient.core.plan import Plan
from specclient.report import Effect, PredictionReport, Reason, Speculation, Usage
from specclient_providers import Reading


def prediction_report(plan: Plan, reading: Reading | None) -> PredictionReport:
    """Outcome and reasons from the plan; counts and effect from the counters, where there are any."""
    seen = reading or Reading()
    sent = plan.outcome in ("forwarded", "local")
    return PredictionReport(
        outcome=plan.outcome,
        effect=effect(plan, seen),
        reasons=plan.reasons,
        accepted_tokens=seen.accepted,
        rejected_tokens=seen.rejected,
        drafted_tokens=seen.drafted,
        acceptance_rate=seen.acceptance_rate if plan.outcome not in ("withheld", "none") else None,
        extra_billed_tokens=seen.extra_billed if sent else None,
        source=seen.counts_source,
    )


def effect(plan: Plan, reading: Reading) -> Effect:
    """`used` only when a counter moved. A zero says `unused` only where the endpoint documents
    predictions: others return zeros without having looked."""
    if plan.outcome == "withheld":
        return "unused"
    if plan.outcome in ("forwarded", "local"):
        if reading.accepted:
            return "used"
        documented = plan.facts.prediction.supported and reading.accepted is not None
        return "unused" if documented else "unknown"
    if plan.outcome in ("via_prompt", "via_corpus"):
        if reading.accepted_draft:
            return "used"
        return "unused" if reading.drafted is not None else "unknown"
    return "unknown"


def usage(reading: Reading) -> Usage:
    """The token counts, as far as the answer held them."""
    seen = reading.usage
    return Usage(prompt=seen.prompt, completion=seen.completion, cached=seen.cached, reasoning=seen.reasoning)


def speculation(reading: Reading) -> Speculation | None:
    """How the server decoded, where it says so."""
    figures = (
        reading.forward_passes,
        reading.drafted,
        reading.accepted_draft,
        reading.mean_acceptance_length,
    )
    if all(figure is None for figure in figures):
        return None
    return Speculation(
        forward_passes=reading.forward_passes,
        draft_tokens=reading.drafted,
        accepted_draft_tokens=reading.accepted_draft,
        mean_acceptance_length=reading.mean_acceptance_length,
    )


def answer_notes(reading: Reading) -> tuple[Reason, ...]:
    """What was refused or mistrusted in the answer's figures."""
    return tuple(Reason(code=code, text=text) for code, text in reading.notes)
