"""A live refusal of something that was ours to give up: the plan without it, remembered."""

from __future__ import annotations

from specclient.core.destination import Destination
from specclient.core.plan import Plan
from specclient.errors import APIError, APIStatusError
from specclient.report import Reason
from specclient_providers import refuses_prediction


def after_refusal(destination: Destination, plan: Plan, error: APIError) -> Plan | None:
    """The plan without what the endpoint refuses; None where it refuses what the caller asked for.

    An error inside a 200 that gives no status of its own counts as a 400 where it names the prediction.
    """
    status = error.status_code if isinstance(error, APIStatusError) else 400
    if plan.outcome not in ("withheld", "none") and refuses_prediction(status, error.body):
        return plan.without_prediction(_learnt(destination, plan, status))
    if not isinstance(error, APIStatusError):
        return None
    if (limit := plan.refused_limit(error.status_code, error.body)) is not None:
        text = f"{plan.facts.title} refused {limit}; the same limit was sent under its other name."
        return plan.without(limit, Reason(code="refused_live", text=text))
    code = plan.refused_opt_in(error.status_code, error.body)
    if code is None:
        return None
    text = f"{plan.facts.title} refused {code}, which was switched on for the report; sent again without it."
    return plan.without(code, Reason(code="refused_live", text=text))


def _learnt(destination: Destination, plan: Plan, status: int) -> Reason:
    reason = Reason(
        code="refused_live",
        text=f"{plan.facts.title} refused the prediction with a {status}; the request was sent again "
        f"without it, and this is remembered for a while.",
    )
    destination.learned.remember(plan.facts.url, plan.facts.model, reason)
    return reason
