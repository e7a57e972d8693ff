"""What a client was wrapped with, and what follows from it for an endpoint and for a plan."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from typing import Any

from pydantic_core import from_json

from specclient import tracing
from specclient.config import Config, Target, load_config
from specclient.core.learned import Learned
from specclient.core.plan import Plan, Policy
from specclient.core.timeline import Timeline
from specclient.economics.account import Economist
from specclient.economics.options import EconomicsOptions
from specclient.middleware.endpoints import Address
from specclient.middleware.known import Known
from specclient.middleware.place import Place
from specclient.middleware.sdk_retries import RetriesByTime
from specclient.report import Reason
from specclient_providers import provider_at, refuses_prediction, resolve
from specclient_providers.signs import GATEWAY, UNNAMED, is_gateway


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of one `wrap`; two wraps of one client agree when these are equal."""

    provider: str | None = None
    target: Target | None = None
    policy: Policy = field(default_factory=Policy)
    strict: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)
    economics: EconomicsOptions | None = None
    prices: Mapping[str, float] | None = None


class Settings:
    """The options at work. `active` is switched off by `unwrap`, for transports that others hold."""

    def __init__(
        self,
        options: Options,
        tracing_options: tracing.TracingOptions,
        learned: Learned,
        max_retries: int | None,
        engine: Any,
        by_time: RetriesByTime | None = None,
    ) -> None:
        self.options = options
        self.by_time = by_time
        self.engine = engine
        self.tracing = tracing_options
        self.learned = learned
        self.max_retries = max_retries
        self.strict = options.strict
        self._places: dict[Known, Place] = {}
        self._lately: dict[tuple[str, str | None], tuple[int, Place]] = {}
        # As text, because facts are looked up by what determines them.
        self._overrides = (
            json.dumps(options.overrides, sort_keys=True, default=str) if options.overrides else ""
        )
        self.active = True

    @cached_property
    def config(self) -> Config:
        """The configuration, read at the first call that needs it: most never do."""
        return load_config()

    def plan_after_refusal(self, plan: Plan, status: int, error: object) -> Plan | None:
        """The plan without what this error refuses, if that is the prediction, a report or the
        name of the output cap. Remembered."""
        if plan.outcome != "forwarded" or not refuses_prediction(status, error):
            if (limit := plan.refused_limit(status, error)) is not None:
                text = f"{plan.facts.title} refused {limit}; the same limit was sent under its other name."
                return plan.without(limit, Reason(code="refused", text=text))
            code = plan.refused_opt_in(status, error)
            if code is None:
                return None
            text = f"{plan.facts.title} refused {code}; the request went again without it."
            return plan.without(code, Reason(code="refused", text=text))
        reason = Reason(
            code="refused",
            text=f"{plan.facts.title} answered {status} and named the prediction; "
            "the request went again without it.",
        )
        self.learned.remember(plan.facts.url, plan.facts.model, reason)
        return plan.without_prediction(reason)

    def trace(
        self,
        known: Known,
        plan: Plan,
        timeline: Timeline,
        workload: str | None,
    ) -> tracing.Call:
        """The call's span, and what is told of it at the start."""
        start = tracing.CallStart(
            provider=known.facts.telemetry_name,
            operation="chat" if known.facts.api == "chat" else "text_completion",
            model=known.facts.model,
            server_address=known.host,
            server_port=known.port,
            stream=bool(plan.body.get("stream")),
            body=plan.body,
            capability=known.capability,
            adapter="wrap",
            target=self.target_name(known),
            workload=workload,
            prediction_chars=len(plan.prediction.text) if plan.prediction is not None else None,
            prediction_tokens=plan.prediction_tokens,
            timeline=timeline,
        )
        return tracing.start_call(start, self.tracing)

    def target_name(self, known: Known) -> str:
        """The configured name, else the host, else the provider."""
        if self.options.target is not None:
            return self.options.target.name
        return known.host or known.facts.provider

    def place_of(self, url: str, address: Address, model: str | None) -> Place:
        """Where the calls to an address and model are planned and weighed."""
        quarter = int(time.time()) // _QUARTER
        found = self._lately.get((url, model))
        if found is not None and found[0] == quarter:
            return found[1]
        place = self._place(self.known(address, model))
        if not place.known.signed:  # the next answer may tell who is there
            if len(self._lately) >= _PLACES:
                self._lately.clear()
            self._lately[url, model] = quarter, place
        return place

    def _place(self, known: Known) -> Place:
        """The place of an endpoint and model: of the configured target, else of the endpoint itself."""
        place = self._places.get(known)
        if place is None:
            options, target = self.options, self.options.target
            economist = Economist(
                known.facts.url if target is None else Economist.name_of(target),
                options.economics or EconomicsOptions(),
                options.prices or {},
                workload=None if target is None else target.tags.get("workload"),
            )
            name = self.target_name(known)
            place = self._places[known] = Place(known, options.policy, self.learned, economist, name)
        return place

    def known(self, address: Address, model: str | None) -> Known:
        """What is known of the endpoint that answers at an address."""
        options = self.options
        provider = options.provider or provider_at(address.host)
        if provider == UNNAMED and self.learned.is_gateway(address.base_url):
            provider = GATEWAY
        return _resolve(
            provider,
            address.model or model,
            address.api,
            address.api_version or (options.target.api_version if options.target else None),
            address.base_url,
            self._overrides,
            int(time.time()) // _QUARTER,
        )

    def heard(self, known: Known, headers: Mapping[bytes, bytes]) -> None:
        """Take note of who signed an answer, where it matters: the address's next calls follow from it."""
        signed = is_gateway(headers.get(b"server", b"").decode("latin-1"))
        if signed != (known.facts.provider == GATEWAY):
            self.learned.heard(known.facts.url, gateway=signed)


_PLACES = 256
_QUARTER = 900
"""Seconds. Every time zone's day begins on a quarter of an hour, and to ask for the date is slow."""


@lru_cache(maxsize=256)
def _resolve(
    provider: str,
    model: str | None,
    api: str,
    api_version: str | None,
    base_url: str | None,
    overrides: str,
    _quarter: int,
) -> Known:
    facts = resolve(
        provider,
        model=model,
        api=api,
        api_version=api_version,
        base_url=base_url,
        overrides=from_json(overrides) if overrides else None,
        on=date.today(),
    )
    return Known(facts)
