"""A report that is made where somebody asks for it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic_core import from_json, to_json

from specclient.core.account import known
from specclient.report import Report


class LateReport:
    """A report as plain data, without what is not known: what JSON holds, and nothing that others hold too.

    Most reports only travel on as that, and the objects cost more than the text.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._data: dict[str, Any] | None = data
        self._written: bytes | None = None

    @classmethod
    def of(cls, report: Report) -> LateReport:
        """One that is there already."""
        late = cls(from_json(to_json(known(dict(report)), exclude_none=True)))
        late.report = report
        return late

    def written(self) -> bytes:
        """The report as every door shows it, in JSON."""
        if self._written is None:
            self._written = to_json(self._data)
        return self._written

    def given_away(self) -> dict[str, Any]:
        """The report as plain data, for one holder to do with as he likes."""
        written, data = self.written(), self._data
        self._data = None
        return from_json(written) if data is None else data

    @cached_property
    def report(self) -> Report:
        return Report.model_validate_json(self.written())
