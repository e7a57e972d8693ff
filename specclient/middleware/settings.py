"""What a client was wrapped with, and what follows from it for a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic_core import from_json

from specclient import tracing
from specclient.config import Target
from specclient.core.learned import Learned
from specclient.core.ledger import capability
from specclient.core.plan import Plan, Policy, build_plan
from specclient.core.timeline import Timeline
from specclient.middleware import pending
from specclient.middleware.call import WrappedCall
from specclient.middleware.context import current_prediction
from specclient.middleware.endpoints import LOCAL, Address, address_of, provider_of
from specclient.middleware.local import Local
from specclient.prediction import Prediction
from specclient.report import Reason
from specclient_providers import EndpointFacts, refuses_prediction, resolve

if TYPE_CHECKING:
    from specclient.middleware.families import Family


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of one `wrap`; two wraps of one client agree when these are equal."""

    provider: str | None = None
    target: Target | None = None
    policy: Policy = field(default_factory=Policy)
    strict: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)


class Settings:
    """The options at work. `active` is switched off by `unwrap`, for transports that others hold."""

    def __init__(
        self,
        options: Options,
        tracing_options: tracing.TracingOptions,
        learned: Learned,
        max_retries: int | None,
        engine: Any,
    ) -> None:
        self.options = options
        self.engine = engine
        self.tracing = tracing_options
        self.learned = learned
        self.max_retries = max_retries
        self.strict = options.strict
        self.active = True

    def open(self, request: Any, family: Family) -> WrappedCall | Local | None:
        """What answers a request: a call over the network, the engine, or (None) nobody here."""
        if request.method != "POST" or not _is_json(request.headers):
            return None
        address = address_of(request.url)
        if address is None:
            return None
        resumed = pending.resume(request)
        if resumed is not None:
            call, waited = resumed
            call.resumed(request, waited)
            return call
        asked = from_json(request.content)
        if not isinstance(asked, dict):
            return None
        beside = current_prediction() if asked.get("prediction") is None else None
        prediction = Prediction.of(beside, asked)
        read_limit = request.extensions.get("timeout", {}).get("read")
        if request.url.scheme == LOCAL or self.options.provider == LOCAL:
            return Local(asked, prediction, address.api, self, family, read_limit)
        plan = build_plan(
            asked,
            facts=self._facts(address, asked.get("model")),
            prediction=prediction,
            policy=self.options.policy,
            learned=self.learned,
            api=address.api,
        )
        if plan.reroute_local:
            known = plan.prediction
            return Local(asked, known, address.api, self, family, read_limit, plan.reasons)
        call = WrappedCall(self, plan, asked, request.content)
        call.first_try(request)
        return call

    def plan_after_refusal(self, plan: Plan, status: int, error: object) -> Plan | None:
        """The plan without the prediction, if this error refuses it and nothing else. Remembered."""
        if not refuses_prediction(status, error):
            return None
        reason = Reason(
            code="refused",
            text=f"{plan.facts.title} answered {status} and named the prediction; "
            "the request went again without it.",
        )
        self.learned.remember(plan.facts.url, plan.facts.model, reason)
        return plan.without_prediction(reason)

    def call_start(self, plan: Plan, asked: Mapping[str, Any], timeline: Timeline) -> tracing.CallStart:
        """What is traced at the start."""
        facts = plan.facts
        host, port = _host_and_port(facts.base_url)
        return tracing.CallStart(
            provider=facts.telemetry_name,
            operation="chat" if facts.api == "chat" else "text_completion",
            model=facts.model,
            server_address=None if facts.in_process else host,
            server_port=None if facts.in_process else port,
            stream=bool(asked.get("stream")),
            body=plan.body,
            in_process=facts.in_process,
            capability=capability(facts),
            adapter="wrap",
            target=self.target_name(facts),
            prediction_chars=len(plan.prediction.text) if plan.prediction is not None else None,
            timeline=timeline,
        )

    def target_name(self, facts: EndpointFacts) -> str:
        """The configured name, else the host, else the provider."""
        if self.options.target is not None:
            return self.options.target.name
        return _host_and_port(facts.base_url)[0] or facts.provider

    def _facts(self, address: Address, model: str | None) -> EndpointFacts:
        options = self.options
        return _resolve(
            options.provider or provider_of(address.host),
            address.model or model,
            address.api,
            address.api_version or (options.target.api_version if options.target else None),
            address.base_url,
            _frozen(options.overrides),
        )


def _frozen(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=str) if value else ""


@lru_cache(maxsize=256)
def _resolve(
    provider: str, model: str | None, api: str, api_version: str | None, base_url: str | None, overrides: str
) -> EndpointFacts:
    return resolve(
        provider,
        model=model,
        api=api,
        api_version=api_version,
        base_url=base_url,
        overrides=from_json(overrides) if overrides else None,
    )


def _is_json(headers: Any) -> bool:
    return (
        headers.get("content-type", "").startswith("application/json") and "content-encoding" not in headers
    )


def _host_and_port(address: str | None) -> tuple[str | None, int | None]:
    parts = urlsplit(address or "")
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return parts.hostname, port if parts.hostname else None
