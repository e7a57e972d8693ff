"""A report that is made where somebody asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from specclient.core.account import known
from specclient.report import Reason, Report, changes


class LateReport:
    """A report as data, without what is not known.

    Most reports only travel on as JSON, and the objects cost more than the data.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    @classmethod
    def of(cls, report: Report) -> LateReport:
        """One that is there already."""
        late = cls(known(dict(report)))
        late.report = report
        return late

    @cached_property
    def report(self) -> Report:
        return Report.model_validate(self._data)

    @property
    def changed(self) -> tuple[str, ...]:
        """As `Report.changed`."""
        notes: tuple[Reason, ...] = self._data["notes"]
        return changes(notes)

    @property
    def counts_passes(self) -> bool:
        """Whether the server said how it decoded, from which follows what a prediction saved."""
        return "speculation" in self._data

    def with_economics(self, gate: str, decision: str | None) -> LateReport:
        """The report with what was decided before the call, and nothing measured."""
        return LateReport({**self._data, "economics": known({"gate": gate, "decision": decision})})

    def json(self) -> bytes:
        """The report as every door shows it: without what is not known."""
        return to_json(self._data, exclude_none=True)
