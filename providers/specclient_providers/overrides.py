"""Corrections of the registry from a user's configuration, validated field by field.

[targets.prod.overrides]
base_model = "gpt-4o-2024-11-20"      # what a deployment with a name of its own really is
unknown_fields = "rejected"
length_key = "max_completion_tokens"
rejected_charged = false
opt_ins = []                           # switch nothing on; or a list of codes to keep
reasoning_history = ["reasoning"]      # all that an earlier message may hold of it; or true: anything

[targets.prod.overrides.prediction]
state = "documented"
shapes = ["object"]
until = 2027-04-14
conflicts = ["tools", "n>1"]

[targets.server.overrides.speculation]
method = "ngram"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from specclient_providers.endpoint import (
    REASONING_KEYS,
    Auth,
    Billing,
    Caution,
    Claim,
    Conflict,
    Derive,
    Endpoint,
    Figure,
    HistoryRule,
    LengthRule,
    OptIn,
    PredictionRule,
    Shape,
    State,
)
from specclient_providers.errors import OverrideError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PredictionOverride(_Strict):
    """Corrects the rule that would apply; what is not given stays as the registry has it."""

    state: State | None = None
    since: date | None = None
    until: date | None = None
    shapes: tuple[Shape, ...] | None = Field(default=None, min_length=1)
    conflicts: tuple[str, ...] | None = None
    length_default: int | None = Field(default=None, gt=0)
    preview: bool | None = None
    forced: dict[str, Any] | None = None
    apis: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    source: str | None = None


class SpeculationOverride(_Strict):
    """Says how a self-hosted server drafts, which most of them do not tell."""

    method: str | None = None
    prompt_methods: tuple[str, ...] | None = None
    corpus_methods: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None


class FigureOverride(_Strict):
    """Where an answer holds a figure; takes precedence over the registry's paths."""

    paths: tuple[str, ...] = Field(min_length=1)
    unit: Literal["s", "ms", "ns", "tokens", "ratio", "count", "positions"]


class OptInOverride(_Strict):
    """A request field or header of the user's own server that makes it report."""

    code: str
    field: str
    value: Any
    traces: tuple[str, ...] = ()
    when: Literal["always", "stream", "plain"] = "always"


class Overrides(_Strict):
    """Every fact that a user can correct. Parsed by `parse`, applied by `apply`."""

    base_model: str | None = None
    title: str | None = None
    key_env: tuple[str, ...] | None = None
    auth_header: str | None = None
    auth_prefix: str | None = None
    paths: dict[str, str] | None = None
    telemetry_name: str | None = None
    self_hosted: bool | None = None
    prediction: PredictionOverride | None = None
    unknown_fields: Literal["ignored", "rejected", "unknown"] | None = None
    length_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    opt_ins: tuple[str | OptInOverride, ...] | None = None
    cautions: dict[str, str] | None = None
    reasoning_history: bool | tuple[str, ...] | None = None
    figures: dict[str, FigureOverride] | None = None
    ttft_includes_queue: bool | None = None
    speculation: SpeculationOverride | None = None
    rejected_charged: bool | None = None
    restrictions: tuple[str, ...] | None = None
    origin: str = Field(default="configuration", exclude=True)
    on: date = Field(default_factory=date.today, exclude=True)

    @classmethod
    def parse(cls, values: Mapping[str, Any], *, origin: str | None, on: date) -> Overrides:
        """Validate. `prediction` may be a state by itself, or a bool for documented / rejected."""
        given = dict(values)
        for internal in ("origin", "on"):
            if internal in given:
                raise OverrideError(_message(origin, internal, "is not a fact that can be set"), key=internal)
        given["prediction"] = _prediction_shorthand(given.get("prediction"))
        try:
            return cls(**given, origin=origin or "configuration", on=on)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise OverrideError(_message(origin, key, first["msg"]), key=key) from None

    def apply(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with these corrections."""
        return replace(
            endpoint,
            title=self.title or endpoint.title,
            key_env=endpoint.key_env if self.key_env is None else self.key_env,
            auth=Auth(
                self.auth_header or endpoint.auth.header,
                endpoint.auth.prefix if self.auth_prefix is None else self.auth_prefix,
            ),
            paths={**endpoint.paths, **(self.paths or {})},
            telemetry_name=self.telemetry_name or endpoint.telemetry_name,
            self_hosted=endpoint.self_hosted if self.self_hosted is None else self.self_hosted,
            prediction=self._predictions(endpoint),
            request=replace(endpoint.request, **self._request(endpoint)),
            answer=replace(endpoint.answer, **self._answer(endpoint)),
            speculation=replace(endpoint.speculation, **_given(self.speculation)),
            billing=endpoint.billing
            if self.rejected_charged is None
            else Billing(self.rejected_charged, self.origin),
            restrictions=endpoint.restrictions if self.restrictions is None else self.restrictions,
        )

    def _claim(self, state: State, **rest: Any) -> Claim:
        return Claim(state, self.origin, self.on, certainty="user", **rest)

    def _predictions(self, endpoint: Endpoint) -> tuple[PredictionRule, ...]:
        given = self.prediction
        if given is None:
            return endpoint.prediction
        rules = endpoint.prediction or (PredictionRule(endpoint.no_prediction),)
        if given.state is not None:
            first = rules[0]
            anywhere = replace(first, models=("*",), apis=("chat", "completions"), api_version_from=None)
            rules = (anywhere,)
        return tuple(self._correct(rule, given) for rule in rules)

    def _correct(self, rule: PredictionRule, given: PredictionOverride) -> PredictionRule:
        changes: dict[str, Any] = {}
        for name in ("shapes", "length_default", "preview", "forced", "apis", "models"):
            value = getattr(given, name)
            if value is not None:
                changes[name] = value
        if given.conflicts is not None:
            changes["conflicts"] = tuple(Conflict(name, source=self.origin) for name in given.conflicts)
        if given.state is not None:
            changes["claim"] = replace(
                self._claim(given.state),
                source=given.source or self.origin,
                since=given.since,
                until=given.until,
            )
        elif given.since or given.until:
            changes["claim"] = replace(
                rule.claim,
                since=given.since or rule.claim.since,
                until=given.until or rule.claim.until,
                source=given.source or self.origin,
                certainty="user",
            )
        return replace(rule, **changes)

    def _request(self, endpoint: Endpoint) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if self.unknown_fields is not None:
            changes["unknown_fields"] = self._claim(self.unknown_fields)
        if self.length_key is not None:
            changes["length"] = (LengthRule(self.length_key, only=True, source=self.origin),)
        if self.cautions is not None:
            changes["cautions"] = tuple(
                Caution(name, text, self.origin) for name, text in self.cautions.items()
            )
        if self.reasoning_history is not None:
            changes["history"] = self._history(endpoint.request.history)
        if self.opt_ins is not None:
            known = {opt.code: opt for opt in endpoint.request.opt_ins}
            changes["opt_ins"] = tuple(self._opt_in(item, known) for item in self.opt_ins)
        return changes

    def _history(self, rule: HistoryRule) -> HistoryRule:
        given = self.reasoning_history
        if given is True:
            return replace(rule, claim=self._claim("documented"), takes=REASONING_KEYS)
        return replace(rule, claim=self._claim("rejected"), takes=given or ())

    def _opt_in(self, item: str | OptInOverride, known: Mapping[str, OptIn]) -> OptIn:
        if isinstance(item, OptInOverride):
            return OptIn(item.code, item.field, item.value, item.traces, self.origin, self.on, item.when)
        if item not in known:
            names = ", ".join(known) or "none"
            raise OverrideError(
                _message(self.origin, "opt_ins", f"no opt-in is called {item!r}; known here: {names}"),
                key="opt_ins",
            )
        return known[item]

    def _answer(self, endpoint: Endpoint) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if self.figures is not None:
            own = tuple(
                Figure(name, figure.paths, figure.unit, self.origin) for name, figure in self.figures.items()
            )
            changes["figures"] = own + tuple(
                figure for figure in endpoint.answer.figures if figure.name not in self.figures
            )
            changes["derived"] = tuple(
                rule for rule in endpoint.answer.derived if _not_replaced(rule, self.figures)
            )
        if self.ttft_includes_queue is not None:
            changes["ttft_includes_queue"] = self.ttft_includes_queue
        return changes


def _not_replaced(rule: Derive, figures: Mapping[str, FigureOverride]) -> bool:
    return rule.name not in figures


def _given(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(exclude_none=True)


def _prediction_shorthand(value: object) -> object:
    if isinstance(value, bool):
        return {"state": "documented" if value else "rejected"}
    if isinstance(value, str) and value in get_args(State):
        return {"state": value}
    return value


def _message(origin: str | None, key: str, what: str) -> str:
    return f"{origin or 'configuration'}: overrides.{key}: {what[:1].lower() + what[1:]}."
