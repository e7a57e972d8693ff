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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError

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
    SpeculationRule,
    State,
)
from specclient_providers.override_errors import did_you_mean, of_validation, refused
from specclient_providers.override_fields import (
    UNITS,
    FigureOverride,
    History,
    OptInChoice,
    OptInOverride,
    PathApi,
    PredictionOverride,
    SpeculationOverride,
    Strict,
    Text,
    header,
    path_of_api,
    variable,
)


class Overrides(Strict):
    """Every fact that a user can correct. Parsed by `parse`, applied by `apply`."""

    base_model: Text | None = None
    title: Text | None = None
    key_env: tuple[Annotated[str, AfterValidator(variable)], ...] | None = None
    auth_header: Annotated[str, AfterValidator(header)] | None = None
    auth_prefix: str | None = None
    paths: dict[PathApi, Annotated[str, AfterValidator(path_of_api)]] | None = None
    telemetry_name: Text | None = None
    self_hosted: bool | None = None
    prediction: PredictionOverride | None = None
    unknown_fields: Literal["ignored", "rejected", "unknown"] | None = None
    length_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    opt_ins: tuple[OptInChoice, ...] | None = None
    cautions: dict[Text, Text] | None = None
    reasoning_history: History | None = None
    figures: dict[str, FigureOverride] | None = None
    ttft_includes_queue: bool | None = None
    speculation: SpeculationOverride | None = None
    rejected_charged: bool | None = None
    restrictions: tuple[Text, ...] | None = None
    origin: str = Field(default="configuration", exclude=True)
    on: date = Field(default_factory=date.today, exclude=True)

    @classmethod
    def parse(cls, values: Mapping[str, Any], *, origin: str | None, on: date) -> Overrides:
        """Validate. `prediction` may be a state by itself, or a bool for documented / rejected."""
        if not isinstance(values, Mapping):
            raise refused(origin, "", "should be a table of facts")
        given = {str(key): value for key, value in values.items()}
        for internal in ("origin", "on"):
            if internal in given:
                raise refused(origin, internal, "is not a fact that can be set")
        given["prediction"] = _prediction_shorthand(given.get("prediction"), origin)
        try:
            parsed = cls(**given, origin=origin or "configuration", on=on)
        except ValidationError as error:
            raise of_validation(error, origin, _known_at) from None
        parsed._check_figures()
        return parsed

    def _check_figures(self) -> None:
        for name, figure in (self.figures or {}).items():
            if name not in UNITS:
                hint = did_you_mean(name, UNITS)
                raise refused(self.origin, f"figures.{name}", f"is no figure that answers have; {hint}")
            if figure.unit not in UNITS[name]:
                units = " or ".join(map(repr, UNITS[name]))
                raise refused(self.origin, f"figures.{name}.unit", f"should be {units}, not {figure.unit!r}")

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
            paths={**endpoint.paths, **{str(api): path for api, path in (self.paths or {}).items()}},
            telemetry_name=self.telemetry_name or endpoint.telemetry_name,
            self_hosted=endpoint.self_hosted if self.self_hosted is None else self.self_hosted,
            prediction=self._predictions(endpoint),
            request=replace(endpoint.request, **self._request(endpoint)),
            answer=replace(endpoint.answer, **self._answer(endpoint)),
            speculation=self._speculation(endpoint),
            billing=endpoint.billing
            if self.rejected_charged is None
            else Billing(self.rejected_charged, self.origin),
            restrictions=endpoint.restrictions if self.restrictions is None else self.restrictions,
        )

    def _speculation(self, endpoint: Endpoint) -> SpeculationRule:
        """The rule with these corrections; the method in the server's own spelling."""
        rule = replace(endpoint.speculation, **_given(self.speculation))
        known = {*rule.methods, *rule.prompt_methods, *rule.corpus_methods}
        if self.speculation is None or rule.method is None or not known or rule.method in known:
            return rule
        method = next((name for name in known if name.lower() == str(rule.method).lower()), None)
        if method is None:
            raise refused(
                self.origin,
                "speculation.method",
                f"no method of {endpoint.title} is called {rule.method!r}; "
                f"{did_you_mean(rule.method, known).rstrip('?')}; a newer one can be named in "
                f"speculation.methods",
            )
        return replace(rule, method=method)

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
            raise refused(self.origin, "opt_ins", f"no opt-in is called {item!r}; known here: {names}")
        return known[item]

    def _answer(self, endpoint: Endpoint) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if self.figures is not None:
            own = [rule for name, figure in self.figures.items() for rule in self._figure(name, figure)]
            replaced = self.figures.keys()
            changes["figures"] = (
                *(rule for rule in own if isinstance(rule, Figure)),
                *(figure for figure in endpoint.answer.figures if figure.name not in replaced),
            )
            changes["derived"] = (
                *(rule for rule in own if isinstance(rule, Derive)),
                *(rule for rule in endpoint.answer.derived if rule.name not in replaced),
            )
        if self.ttft_includes_queue is not None:
            changes["ttft_includes_queue"] = self.ttft_includes_queue
        return changes

    def _figure(self, name: str, figure: FigureOverride) -> Iterable[Figure | Derive]:
        if not figure.since:
            return (Figure(name, figure.paths, figure.unit, self.origin),)
        end, begin = f"own_{name}_end", f"own_{name}_begin"
        return (
            Figure(end, figure.paths, figure.unit, self.origin),
            Figure(begin, figure.since, figure.unit, self.origin),
            Derive(name, (end,), (begin,)),
        )


def _given(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(exclude_none=True)


def _prediction_shorthand(value: object, origin: str | None) -> object:
    if isinstance(value, bool):
        return {"state": "documented" if value else "rejected"}
    if isinstance(value, str) and value in get_args(State):
        return {"state": value}
    if value is None or isinstance(value, Mapping):
        return value
    states = ", ".join(map(repr, get_args(State)))
    raise refused(origin, "prediction", f"should be true, false, one of {states}, or a table")


def _known_at(place: tuple[str, ...]) -> Iterable[str]:
    """The keys that may stand in the table at a place."""
    tables: Mapping[str, type[BaseModel]] = {
        "": Overrides,
        "prediction": PredictionOverride,
        "speculation": SpeculationOverride,
        "figures": FigureOverride,
        "opt_ins": OptInOverride,
    }
    table = tables.get(place[0] if place else "", Overrides)
    return [name for name in table.model_fields if table is not Overrides or name not in ("origin", "on")]
