"""What was decided for a request, and what of it is the same for every request like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from specclient.core import account
from specclient.core.plan import Plan
from specclient.core.shaping import LENGTH_KEYS
from specclient.economics.gate import Decision
from specclient.middleware.known import Known
from specclient.prediction import Prediction
from specclient.report import changes


class Decided:
    """A plan without the texts of the request that it was made for, so that it may be kept.

    `target` is the name in reports. `plan_for` puts a request's own texts back in, where somebody needs the
    whole plan: a refusal, a trace.
    """

    def __init__(
        self, plan: Plan, asked: Mapping[str, Any], known: Known, target: str, decision: Decision | None
    ) -> None:
        body = plan.body
        self.known = known
        self.target = target
        self.decision = decision
        self.outcome = plan.outcome
        self.hidden = plan.hidden
        self.headers = plan.headers
        self.removed = tuple(key for key in asked if key not in body)
        self.changed = {
            key: value for key, value in body.items() if key not in asked or value is not asked[key]
        }
        self.may_be_refused = (
            plan.outcome == "forwarded" or bool(plan.hidden) or any(key in body for key in LENGTH_KEYS)
        )
        """Whether an error could be about what specclient added or may rename."""
        self.changes = changes(plan.notes)
        self.notes = plan.notes
        self.plan = replace(plan, body={}, request={}, prediction=None)

    def body(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The wire body of a request."""
        return {key: value for key, value in asked.items() if key not in self.removed} | self.changed

    def plan_for(self, asked: Mapping[str, Any]) -> Plan:
        """The whole plan of a request that gives its prediction itself."""
        prediction = Prediction.of(asked.get("prediction"))
        return replace(self.plan, body=self.body(asked), request=asked, prediction=prediction)

    @cached_property
    def named(self) -> dict[str, Any]:
        """What every try and the whole report say of where the call goes."""
        facts = self.plan.facts
        return account.known({"target": self.target, "provider": facts.provider, "model": facts.model})

    @cached_property
    def silence(self) -> bytes:
        """What the report says of the prediction where the answer tells nothing of it, as JSON."""
        said = {
            "prediction": account.prediction_data(self.plan, self.known.silence),
            "notes": self.notes,
        }
        return to_json(said, exclude_none=True)
