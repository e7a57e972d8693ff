"""What a plan and an answer's figures say together, as the parts of a report.

The parts are plain data: a `Report` is made of them in one go, which takes half the time of making it part
by part, and only where somebody looks at it.
"""

from __future__ import annotations

from typing import Any

from specclient.core.plan import Plan
from specclient.report import Effect, PredictionReport, Reason
from specclient_providers import Reading


def prediction_report(plan: Plan, reading: Reading | None) -> PredictionReport:
    """Outcome and reasons from the plan; counts and effect from the counters, where there are any."""
    return PredictionReport.model_validate(prediction_data(plan, reading or Reading()))


def prediction_data(plan: Plan, reading: Reading) -> dict[str, Any]:
    """What a `PredictionReport` is made of, without what is not known."""
    data: dict[str, Any] = {
        "outcome": plan.outcome,
        "effect": effect(plan, reading),
        "reasons": plan.reasons,
        "accepted_tokens": reading.accepted,
        "rejected_tokens": reading.rejected,
        "drafted_tokens": reading.drafted,
        "source": reading.counts_source,
    }
    if plan.outcome not in ("withheld", "none"):
        data["acceptance_rate"] = reading.acceptance_rate
    if plan.outcome in ("forwarded", "local"):
        data["extra_billed_tokens"] = reading.extra_billed
    return known(data)


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


def usage_data(reading: Reading) -> dict[str, Any]:
    """What a `Usage` is made of: the token counts, as far as the answer held them."""
    seen = reading.usage
    return known(
        {
            "prompt": seen.prompt,
            "completion": seen.completion,
            "cached": seen.cached,
            "reasoning": seen.reasoning,
        }
    )


def speculation_data(reading: Reading) -> dict[str, Any] | None:
    """What a `Speculation` is made of: how the server decoded, where it says so."""
    figures = known(
        {
            "forward_passes": reading.forward_passes,
            "draft_tokens": reading.drafted,
            "accepted_draft_tokens": reading.accepted_draft,
            "mean_acceptance_length": reading.mean_acceptance_length,
        }
    )
    return figures or None


def known(figures: dict[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def answer_notes(reading: Reading) -> tuple[Reason, ...]:
    """What was refused or mistrusted in the answer's figures."""
    return tuple(Reason(code=code, text=text) for code, text in reading.notes)
