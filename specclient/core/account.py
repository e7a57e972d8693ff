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
    data = {}
    if seen.prompt is not None:
        data["prompt"] = seen.prompt
    if seen.completion is not None:
        data["completion"] = seen.completion
    if seen.cached is not None:
        data["cached"] = seen.cached
    if seen.reasoning is not None:
        data["reasoning"] = seen.reasoning
    return data


def speculation_data(reading: Reading) -> dict[str, Any] | None:
    """What a `Speculation` is made of: how the server decoded, where it says so."""
    passes, length = reading.forward_passes, reading.mean_acceptance_length
    drafted, accepted = reading.drafted, reading.accepted_draft
    if passes is None and length is None and drafted is None and accepted is None:
        return None
    return known(
        {
            "forward_passes": passes,
            "draft_tokens": drafted,
            "accepted_draft_tokens": accepted,
            "mean_acceptance_length": length,
        }
    )


def known(figures: dict[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def answer_notes(reading: Reading) -> tuple[Reason, ...]:
    """What was refused or mistrusted in the answer's figures."""
    return tuple(Reason(code=code, text=text) for code, text in reading.notes)
