"""A plan in the making: the one mutable thing that the planning steps share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from specclient.report import Outcome, Reason
from specclient_providers import EndpointFacts


@dataclass(slots=True)
class PlanDraft:
    """`body` is a shallow copy of the request: a nested value is copied before it is changed."""

    body: dict[str, Any] = field(repr=False)
    facts: EndpointFacts
    outcome: Outcome = "none"
    headers: dict[str, str] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    corpus: str | None = field(default=None, repr=False)

    def decide(self, outcome: Outcome, code: str, text: str, source: str | None = None) -> None:
        """Say where the prediction goes, and why."""
        self.outcome = outcome
        self.reasons.append(Reason(code=code, text=text, source=source))

    def note(self, code: str, text: str, source: str | None = None) -> None:
        """Say what else was mapped or noticed."""
        self.notes.append(Reason(code=code, text=text, source=source))

    def at(self, dotted: str) -> Any:
        """The body's value at a dotted key, or None."""
        node: Any = self.body
        for key in dotted.split("."):
            if not isinstance(node, dict) or key not in node:
                return None
            node = node[key]
        return node

    def put(self, dotted: str, value: Any) -> bool:
        """Set a dotted key, copying what lies on the way; False, and nothing done, where the caller has put
        something else there."""
        *path, last = dotted.split(".")
        for length in range(1, len(path) + 1):
            inner = self.at(".".join(path[:length]))
            if inner is not None and not isinstance(inner, dict):
                return False
        node = self.body
        for key in path:
            node[key] = dict(node.get(key) or {})
            node = node[key]
        node[last] = value
        return True
