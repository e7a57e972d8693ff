"""Rules -> facts: what holds for one model, API kind, api-version and day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from specclient_providers import registry
from specclient_providers.endpoint import (
    Claim,
    Endpoint,
    EndpointFacts,
    LengthRule,
    PredictionFacts,
    PredictionRule,
    RequestFacts,
)

_DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)")
_V1_ROUTE = ("", "v1", "preview", "latest")
"""api-versions that mean the route without deployments in its path."""


def resolve(
    provider: str,
    *,
    model: str | None = None,
    api: str = "chat",
    api_version: str | None = None,
    base_url: str | None = None,
    on: date | None = None,
    overrides: Mapping[str, Any] | None = None,
    origin: str | None = None,
) -> EndpointFacts:
    """The facts about `provider`, without network.

    `on` is the day they are asked for (default today). `overrides` corrects them (see `overrides.py`);
    `origin` names where the corrections came from, for sources and errors.
    Raises UnknownProvider for an unknown name and OverrideError for an invalid correction.
    """
    day = on or date.today()
    endpoint, base_model = _corrected(provider, overrides, origin, day)
    known_as = _own_name(base_model or model, endpoint)
    asked, deployment = _in_address(base_url, endpoint)
    if endpoint.versioned:
        api_version = api_version or asked.pop("api-version", None)
    address = normal_base_url(base_url or endpoint.base_url, endpoint)
    path, query = _route(
        endpoint, api, deployment or (model and quote(model, errors="surrogatepass")), api_version, address
    )
    if endpoint.versioned and address is not None:
        address = _resource_root(address, dated=not _on_v1_route(api_version, address))
    return EndpointFacts(
        provider=endpoint.name,
        title=endpoint.title,
        model=model,
        api=api,
        api_version=api_version,
        on=day,
        base_url=address,
        path=path,
        query={**asked, **query},
        key_env=endpoint.key_env,
        auth=endpoint.auth,
        telemetry_name=endpoint.telemetry_name or endpoint.name,
        self_hosted=endpoint.self_hosted,
        speaks_openai=endpoint.speaks_openai,
        prediction=_prediction(endpoint, api, known_as, api_version, day),
        request=RequestFacts(
            unknown_fields=endpoint.request.unknown_fields,
            opt_ins=tuple(
                opt
                for opt in endpoint.request.opt_ins
                if api in opt.apis and not _older(api_version, opt.api_version_from)
            ),
            length=_length_rule(endpoint, _tuned_from(known_as)),
            cautions=endpoint.request.cautions,
            history=endpoint.request.history,
            request_id=endpoint.request.request_id,
        ),
        answer=endpoint.answer,
        speculation=endpoint.speculation,
        billing=endpoint.billing,
        restrictions=endpoint.restrictions,
        paths=endpoint.paths,
        rules=endpoint.prediction,
    )


def _corrected(
    provider: str, overrides: Mapping[str, Any] | None, origin: str | None, day: date
) -> tuple[Endpoint, str | None]:
    """An endpoint with its corrections, and the base model that they name."""
    if not overrides:
        return registry.get(provider), None
    from specclient_providers.overrides import (
        Overrides,  # its validation takes longer to build than all facts
    )

    correction = Overrides.parse(overrides, origin=origin, on=day)
    return correction.apply(registry.get(provider)), correction.base_model


def matches(patterns: tuple[str, ...], model: str | None) -> bool:
    """True when a model name fits one of the shell patterns; an unknown model fits only `*`."""
    name = (model or "").strip().lower()
    return any(pattern == "*" or (name and fnmatchcase(name, pattern)) for pattern in patterns)


def _own_name(model: str | None, endpoint: Endpoint) -> str | None:
    """A model's name without the endpoint's own in front, as routers write it (`openai/gpt-4.1`)."""
    prefix = f"{endpoint.name}/"
    return model[len(prefix) :] if model and model.lower().startswith(prefix) else model


def _tuned_from(model: str | None) -> str | None:
    """The base of a fine-tuned model (`ft:gpt-4o-2024-08-06:org:name:id`), any other name as it is.

    A tuned model refuses what its base refuses; that it takes what the base takes is not documented.
    """
    parts = (model or "").split(":")
    return parts[1] if len(parts) > 2 and parts[0].lower() == "ft" else model


def normal_base_url(address: str | None, endpoint: Endpoint) -> str | None:
    """One spelling for an address given with or without a version, an ending slash or an API path.

    A path that is only the beginning of the endpoint's own is completed; any other stays as it is.
    """
    if address is None or "://" not in address:
        return address  # whoever connects says what is wrong with it
    parts = urlsplit(address.strip())
    path = parts.path.rstrip("/")
    for ending in ("/chat/completions", "/completions"):
        path = path.removesuffix(ending)
    if not endpoint.versioned and (not path or endpoint.api_prefix.startswith(f"{path}/")):
        path = endpoint.api_prefix
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), "", ""))


def _in_address(base_url: str | None, endpoint: Endpoint) -> tuple[dict[str, str], str | None]:
    """The query of an address, and the deployment in its path: Azure's portal shows whole addresses."""
    if base_url is None or "://" not in base_url:
        return {}, None
    parts = urlsplit(base_url.strip())
    deployment = _DEPLOYMENT.search(parts.path) if endpoint.versioned else None
    return dict(parse_qsl(parts.query, keep_blank_values=True)), deployment and deployment.group(1)


def _route(
    endpoint: Endpoint, api: str, model: str | None, api_version: str | None, address: str | None
) -> tuple[str | None, dict[str, str]]:
    path = endpoint.paths.get(api)
    if path is None or not endpoint.speaks_openai:
        return None, {}
    if not endpoint.versioned or _on_v1_route(api_version, address):
        named = endpoint.versioned and (api_version or "").lower() in ("preview", "latest")
        return path, {"api-version": str(api_version)} if named else {}
    deployment = f"/deployments/{model}" if api != "models" else ""
    return f"{deployment}{path}", {"api-version": str(api_version)}


def _on_v1_route(api_version: str | None, address: str | None) -> bool:
    return (api_version or "").lower() in _V1_ROUTE or (address or "").endswith("/openai/v1")


def _resource_root(address: str, *, dated: bool) -> str:
    """A resource's address ends in /openai for dated api-versions and in /openai/v1 for the v1 route."""
    parts = urlsplit(address)
    root = parts.path.split("/openai")[0].rstrip("/")
    path = f"{root}/openai" if dated else f"{root}/openai/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _length_rule(endpoint: Endpoint, model: str | None) -> LengthRule | None:
    return next((rule for rule in endpoint.request.length if matches(rule.models, model)), None)


def _prediction(
    endpoint: Endpoint, api: str, model: str | None, api_version: str | None, on: date
) -> PredictionFacts:
    """The first rule whose conditions all hold; else the fact that names the condition that failed."""
    missing = ""
    for rule in endpoint.prediction:
        failed = _failed_condition(rule, api, model, api_version)
        if not failed:
            return _from_rule(rule, on)
        if rule.claim.state == "documented":
            missing = missing or failed
    return PredictionFacts(claim=endpoint.no_prediction, on=on, code=missing or endpoint.no_prediction.state)


def _failed_condition(rule: PredictionRule, api: str, model: str | None, api_version: str | None) -> str:
    if api not in rule.apis:
        return "api"
    if _older(api_version, rule.api_version_from):
        return "api_version"
    known_as = model if rule.claim.state == "documented" else _tuned_from(model)
    return "" if matches(rule.models, known_as) else "model"


def _older(api_version: str | None, needed: str | None) -> bool:
    """True when a dated api-version is before the one needed; the v1 route is always current."""
    return (
        needed is not None
        and (api_version or "").lower() not in _V1_ROUTE
        and str(api_version)[:10] < needed[:10]
    )


def _from_rule(rule: PredictionRule, on: date) -> PredictionFacts:
    return PredictionFacts(
        claim=rule.claim,
        on=on,
        code=_unsupported_code(rule.claim, on),
        shapes=rule.shapes,
        conflicts=rule.conflicts,
        length_default=rule.length_default,
        preview=rule.preview,
        forced=rule.forced,
        of_model="*" not in rule.models,
    )


def _unsupported_code(claim: Claim, on: date) -> str:
    if claim.state != "documented":
        return claim.state
    if claim.expired(on):
        return "expired"
    return "" if claim.holds(on) else "not_yet"
