"""What an endpoint documents, as values to print, compare or store. No network.

The facts are those that the planner obeys: both ask `specclient_providers.resolve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict

from specclient.config.masking import without_password
from specclient_providers import EndpointFacts, resolve
from specclient_providers.endpoint import Claim, Derive, Figure


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Fact(_Frozen):
    """One statement: its state, and the ground it stands on.

    `certainty` says how the source was used: `verified`, `secondary` (a third party), `recalled`,
    `disputed` (sources differ, the note says how) or `user` (your configuration says so).
    """

    state: str
    source: str | None = None
    checked: date | None = None
    since: date | None = None
    until: date | None = None
    certainty: str = "verified"
    note: str = ""

    @classmethod
    def of(cls, claim: Claim) -> Fact:
        return cls(
            state=claim.state,
            source=claim.source,
            checked=claim.checked,
            since=claim.since,
            until=claim.until,
            certainty=claim.certainty,
            note=claim.note,
        )


class PredictionCapability(Fact):
    """`prediction` for this model, API kind, api-version and day.

    `supported` is the planner's own answer; `why_not` its code ("model", "api", "api_version",
    "expired", "not_yet", or a state). `ends_soon` marks an end within 90 days. `conflicts` maps a
    parameter to what is done about it.
    """

    supported: bool
    why_not: str = ""
    preview: bool = False
    expired: bool = False
    ends_soon: bool = False
    shapes: tuple[str, ...] = ()
    conflicts: dict[str, str] = {}
    length_default: int | None = None
    rejected_charged: bool | None = None
    billing_source: str | None = None
    billing_note: str = ""


class ModelCapability(Fact):
    """What one group of models takes: shell patterns on the model name."""

    models: tuple[str, ...]
    apis: tuple[str, ...]
    shapes: tuple[str, ...] = ()
    api_version_from: str | None = None
    expired: bool = False
    ends_soon: bool = False


class SpeculationCapability(Fact):
    """Speculative decoding by the endpoint itself, and whether it can draft from the prompt."""

    methods: tuple[str, ...] = ()
    method: str | None = None
    drafts_from_prompt: tuple[str, ...] = ()
    drafts_from_corpus: tuple[str, ...] = ()
    per_request: str = ""
    switch_on: str = ""


class FigureCapability(_Frozen):
    """Where an answer holds one figure. `unit` is the endpoint's; specclient reports seconds."""

    name: str
    paths: tuple[str, ...]
    unit: str
    source: str | None = None
    note: str = ""


class OptInCapability(_Frozen):
    """A documented request field or header that is switched on to get figures."""

    code: str
    field: str
    when: str
    source: str
    checked: date | None = None


class Capabilities(_Frozen):
    """Everything documented about one endpoint, for one model, API kind, api-version and day."""

    provider: str
    title: str
    model: str | None
    api: str
    api_version: str | None
    on: date
    base_url: str | None
    self_hosted: bool
    speaks_openai: bool
    prediction: PredictionCapability
    per_model: tuple[ModelCapability, ...]
    """Every rule of the endpoint; `prediction` is the one that applies here."""
    speculation: SpeculationCapability
    unknown_fields: Fact
    length_key: str | None
    counters: Fact
    timings: Fact
    figures: tuple[FigureCapability, ...]
    derived: dict[str, str]
    opt_ins: tuple[OptInCapability, ...]
    cautions: dict[str, str]
    restrictions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: dates as ISO strings, None where nothing is known."""
        return self.model_dump(mode="json")

    def render(self, width: int = 80) -> str:
        """The facts for a terminal of `width` columns."""
        from specclient.facts_text import render

        return render(self, width)

    def __str__(self) -> str:
        return self.render()


def capabilities(
    provider: str,
    *,
    model: str | None = None,
    api: str = "chat",
    api_version: str | None = None,
    base_url: str | None = None,
    on: date | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Capabilities:
    """What `provider` documents about predictions, speculation, counters and timings.

    `on` asks for another day than today: support that has ended by then is not support. Raises
    UnknownProvider (a ValueError) with near names for a provider that is not in the registry.
    """
    facts = resolve(
        provider,
        model=model,
        api=api,
        api_version=api_version,
        base_url=base_url,
        on=on,
        overrides=overrides,
    )
    return of_facts(facts)


def of_facts(facts: EndpointFacts) -> Capabilities:
    """The printable form of facts that are already resolved."""
    return Capabilities(
        provider=facts.provider,
        title=facts.title,
        model=facts.model,
        api=facts.api,
        api_version=facts.api_version,
        on=facts.on,
        base_url=None if facts.base_url is None else without_password(facts.base_url),
        self_hosted=facts.self_hosted,
        speaks_openai=facts.speaks_openai,
        prediction=_prediction(facts),
        per_model=tuple(
            ModelCapability(
                **Fact.of(rule.claim).model_dump(),
                models=rule.models,
                apis=rule.apis,
                shapes=rule.shapes if rule.claim.state == "documented" else (),
                api_version_from=rule.api_version_from,
                expired=rule.claim.expired(facts.on),
                ends_soon=rule.claim.ends_soon(facts.on),
            )
            for rule in facts.rules
        ),
        speculation=SpeculationCapability(
            **Fact.of(facts.speculation.claim).model_dump(),
            methods=facts.speculation.methods,
            method=facts.speculation.method,
            drafts_from_prompt=facts.speculation.prompt_methods,
            drafts_from_corpus=facts.speculation.corpus_methods,
            per_request=facts.speculation.per_request,
            switch_on=facts.speculation.switch_on,
        ),
        unknown_fields=Fact.of(facts.request.unknown_fields),
        length_key=facts.request.length.key if facts.request.length else None,
        counters=Fact.of(facts.answer.counters),
        timings=Fact.of(facts.answer.timings),
        figures=tuple(_figure(figure) for figure in facts.answer.figures),
        derived={rule.name: _formula(rule) for rule in facts.answer.derived},
        opt_ins=tuple(
            OptInCapability(
                code=opt.code, field=opt.field, when=opt.when, source=opt.source, checked=opt.checked
            )
            for opt in facts.request.opt_ins
        ),
        cautions={item.parameter: item.text for item in facts.request.cautions},
        restrictions=facts.restrictions,
    )


def _prediction(facts: EndpointFacts) -> PredictionCapability:
    found = facts.prediction
    return PredictionCapability(
        **Fact.of(found.claim).model_dump(),
        supported=found.supported,
        why_not=found.code,
        preview=found.preview,
        expired=found.expired,
        ends_soon=found.ends_soon,
        shapes=found.shapes,
        conflicts={conflict.parameter: conflict.remedy for conflict in found.conflicts},
        length_default=found.length_default,
        rejected_charged=facts.billing.rejected_charged,
        billing_source=facts.billing.source,
        billing_note=facts.billing.note,
    )


def _figure(figure: Figure) -> FigureCapability:
    return FigureCapability(
        name=figure.name, paths=figure.paths, unit=figure.unit, source=figure.source, note=figure.note
    )


def _formula(rule: Derive) -> str:
    plus = " + ".join((*rule.plus, *(f"[{name}]" for name in rule.optional)))
    return plus + "".join(f" - {name}" for name in rule.minus)
