"""Answers from the engine in this process, in the dress of an HTTP response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specclient.core.plan import Plan

if TYPE_CHECKING:
    from specclient.middleware.families import Family


@dataclass(frozen=True, slots=True)
class Local:
    """A step that needs no network."""

    plan: Plan
    engine: Mapping[str, Any]
    family: Family

    def run(self, _transport: Any) -> Any:
        raise NotImplementedError

    async def arun(self, _transport: Any) -> Any:
        raise NotImplementedError
