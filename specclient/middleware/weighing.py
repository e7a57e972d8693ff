"""What a call's prediction is worth, in its report."""

from __future__ import annotations

from dataclasses import dataclass

from specclient.core.plan import Plan
from specclient.economics.account import COMPARED, Economist
from specclient.economics.gate import Decision
from specclient.middleware.late import LateReport


@dataclass(frozen=True, slots=True)
class Weighing:
    """What the gate decided on a call, and who keeps its account."""

    economist: Economist
    decision: Decision | None = None
    workload: str | None = None

    def account(self, late: LateReport, plan: Plan, *, completed: bool) -> LateReport:
        """The report with its economics, where the call says anything of what a prediction is worth."""
        if plan.outcome not in COMPARED and self.decision is None:
            return late
        if self.economist.keeps_no_account and not late.counts_passes:
            why = None if self.decision is None else self.decision.why
            return late.with_economics(self.economist.options.gate, why)
        report = self.economist.account(
            late.report, self.decision, completed=completed, workload=self.workload
        )
        return LateReport.of(report)
