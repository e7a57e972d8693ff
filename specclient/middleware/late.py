"""A report that is made where somebody asks for it."""

from __future__ import annotations

from functools import cached_property

from pydantic_core import to_json

from specclient.core.account import known
from specclient.report import Report


class LateReport:
    """A report as JSON, without what is not known.

    Most reports only travel on as JSON, and the objects cost more than the text.
    """

    def __init__(self, written: bytes) -> None:
        self.written = written
        """The report as every door shows it."""

    @classmethod
    def of(cls, report: Report) -> LateReport:
        """One that is there already."""
        late = cls(to_json(known(dict(report)), exclude_none=True))
        late.report = report
        return late

    @cached_property
    def report(self) -> Report:
        return Report.model_validate_json(self.written)
