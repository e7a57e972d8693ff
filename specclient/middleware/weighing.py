"""What a call's prediction is worth, in its report."""

from __future__ import annotations

from typing import Any

from specclient.core.account import known
from specclient.economics.account import COMPARED
from specclient.middleware.decided import Decided
from specclient.middleware.late import LateReport
from specclient.middleware.place import Place


def weighed(
    data: dict[str, Any],
    place: Place,
    decided: Decided,
    workload: str | None,
    *,
    passes: bool,
    completed: bool,
) -> LateReport:
    """The report with its economics, where the call says anything of what a prediction is worth.

    `passes` says whether the server told how it decoded, from which follows what a prediction saved.
    """
    decision = decided.decision
    if decided.outcome not in COMPARED and decision is None:
        return LateReport(data)
    if passes or place.keeps_account:
        report = LateReport(data).report
        return LateReport.of(
            place.economist.account(report, decision, completed=completed, workload=workload)
        )
    why = None if decision is None else decision.why
    data["economics"] = known({"gate": place.economist.options.gate, "decision": why})
    return LateReport(data)
