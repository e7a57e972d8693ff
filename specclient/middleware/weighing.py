"""What a call's prediction is worth, in its report."""

from __future__ import annotations

from pydantic_core import to_json

from specclient.core.account import known
from specclient.economics.account import COMPARED
from specclient.middleware.decided import Decided
from specclient.middleware.late import LateReport
from specclient.middleware.place import Place


def weighed(
    written: bytes, place: Place, decided: Decided, workload: str | None, *, passes: bool, completed: bool
) -> LateReport:
    """The report with its economics, where the call says anything of what a prediction is worth.

    `passes` says whether the server told how it decoded, from which follows what a prediction saved.
    """
    decision = decided.decision
    if decided.outcome not in COMPARED and decision is None:
        return LateReport(written)
    if passes or place.keeps_account:
        report = LateReport(written).report
        return LateReport.of(
            place.economist.account(report, decision, completed=completed, workload=workload)
        )
    why = None if decision is None else decision.why
    told = to_json(known({"gate": place.economist.options.gate, "decision": why}))
    return LateReport(b'%b,"economics":%b}' % (written[:-1], told))
