"""`wrap` and `unwrap`: the middleware is put around the transports that a client already has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, TypeVar

from specclient.config import Config, Target, resolve_target
from specclient.core.learned import Learned
from specclient.core.plan import Policy
from specclient.economics.options import EconomicsOptions
from specclient.errors import ConfigError
from specclient.middleware.clients import http_clients
from specclient.middleware.family import Family
from specclient.middleware.sdk_retries import RetriesByTime
from specclient.middleware.settings import Options, Settings
from specclient.middleware.transport import AsyncTransport, SyncTransport
from specclient.tracing import DEFAULT_OPTIONS, TracingOptions
from specclient_providers import OverrideError, UnknownProvider, resolve
from specclient_providers.overrides import Overrides

Sdk = TypeVar("Sdk")

_learned = Learned()
"""Refusals seen by any wrapped client of this process: an endpoint that refuses one refuses all."""


def wrap(
    sdk: Sdk,
    *,
    target: str | None = None,
    provider: str | None = None,
    on_unsupported: Literal["withhold", "error", "local"] | None = None,
    put_in_prompt: bool | None = None,
    overrides: Mapping[str, Any] | None = None,
    strict: bool = False,
    tracing: TracingOptions = DEFAULT_OPTIONS,
    economics: EconomicsOptions | Mapping[str, Any] | None = None,
    prices: Mapping[str, float] | None = None,
    engine: Any = None,
    **local: Any,
) -> Sdk:
    """Handle `prediction`, report and trace in an SDK's client. Returns the same object.

    `sdk` is a client of openai, groq, mistralai, cerebras, fireworks or together, sync or async, or the
    httpx or httpx2 client that one was or will be made with. Its transports are wrapped in place: proxies,
    limits, timeouts and the SDK's own retries stay. Only POSTs to chat and text completions are touched.

    The endpoint is known by the host of the request; `provider` names it where the host cannot (a proxy,
    a server of your own), `target` takes both, and the policy, from the configuration. `on_unsupported`
    says what becomes of a prediction that the endpoint does not document, `put_in_prompt` allows adding it
    to the messages of a server that drafts from them; `overrides` correct the facts about the endpoint.
    `economics` and `prices` are the tables of a target of these names: whether predictions are weighed and
    withheld by evidence, and what tokens cost; evidence is kept for each endpoint, model and workload.
    With `strict`, a fault inside specclient is an error instead of a call without it.
    A client with `base_url="local://"` is answered in this process, by the engine of the model that the
    request names; `engine` is a loaded one, `local` takes `dtype`, `device`, `draft_model`, `max_context`.

    Raises TypeError for an object that is no such client, and ConfigError if it is wrapped already with
    other options, for an unknown provider and for a correction that is wrong.
    """
    weighed = _weighed(economics, prices)
    chosen = _options(target, provider, on_unsupported, put_in_prompt, overrides, strict, weighed, local)
    found = http_clients(sdk)
    for _, client in found:
        existing = _settings_of(client)
        if existing is not None and existing.options != chosen:
            raise ConfigError(
                "This client is wrapped already, with other options; call specclient.unwrap on it first."
            )
    configuration = getattr(sdk, "sdk_configuration", None)  # mistralai's
    by_time = None if configuration is None else RetriesByTime(configuration)
    settings = Settings(chosen, tracing, _learned, getattr(sdk, "max_retries", None), engine, by_time)
    for family, client in found:
        if _settings_of(client) is None:
            _put_around(client, family, settings)
    return sdk


def unwrap(sdk: Sdk) -> Sdk:
    """Take the middleware out again. Returns the same object; one that is not wrapped is left as it is."""
    for _, client in http_clients(sdk):
        settings = _settings_of(client)
        if settings is not None:
            settings.active = False
        client._transport = _inside(client._transport)
        for pattern, transport in client._mounts.items():
            client._mounts[pattern] = _inside(transport)
    return sdk


def _options(
    target: str | None,
    provider: str | None,
    on_unsupported: Literal["withhold", "error", "local"] | None,
    put_in_prompt: bool | None,
    overrides: Mapping[str, Any] | None,
    strict: bool,
    weighed: Mapping[str, Any],
    local: Mapping[str, Any],
) -> Options:
    unknown = sorted(set(local) - {"dtype", "device", "draft_model", "max_context", "use_corpus"})
    if unknown:
        raise TypeError(f"wrap() has no argument {unknown[0]!r}.")
    if target is not None and provider is not None:
        raise ConfigError("wrap() takes target= or provider=, not both: a target has its provider.")
    configured: Target | None = resolve_target(target, **weighed, **local) if target is not None else None
    if local.get("use_corpus") or (configured is not None and configured.use_corpus):
        where = "the arguments" if configured is None else f"target {configured.name!r}"
        raise ConfigError(
            f"wrap() loads no draft corpora: leave use_corpus out of {where}, or call that server through "
            "specclient.Client, which loads and removes them."
        )
    if configured is not None:
        provider = configured.provider
        on_unsupported = on_unsupported or configured.on_unsupported
        put_in_prompt = configured.put_in_prompt if put_in_prompt is None else put_in_prompt
        overrides = configured.overrides if overrides is None else overrides
        local = {name: value for name, value in configured.engine.items() if value is not None}
    _check_facts(provider, overrides, configured)
    return Options(
        provider=provider,
        target=configured,
        policy=Policy(on_unsupported or "withhold", put_in_prompt=bool(put_in_prompt)),
        strict=strict,
        overrides=dict(overrides or {}),
        engine={name: value for name, value in local.items() if name != "use_corpus"},
        economics=weighed["economics"] if configured is None else configured.economics,
        prices=weighed["prices"] if configured is None else configured.prices,
    )


def _weighed(
    economics: EconomicsOptions | Mapping[str, Any] | None, prices: Mapping[str, float] | None
) -> dict[str, Any]:
    """Both tables as a target would hold them; None where they are not given. Raises ConfigError."""
    table = economics.model_dump() if isinstance(economics, EconomicsOptions) else economics
    given: dict[str, Any] = {"economics": table, "prices": prices}
    nowhere = Target(name="wrap()", provider="openai_compatible")
    target = resolve_target(nowhere, config=Config(path=None, default=None), **given)
    return {name: None if value is None else getattr(target, name) for name, value in given.items()}


def _check_facts(
    provider: str | None, overrides: Mapping[str, Any] | None, configured: Target | None
) -> None:
    """Refuse an unknown provider or a wrong correction now: at a request it could only be logged."""
    origin = "the overrides of wrap()" if configured is None else configured.origins.get("overrides")
    try:
        if provider is not None:
            resolve(provider, overrides=overrides, origin=origin)
        else:
            Overrides.parse(overrides or {}, origin=origin, on=date.today())
    except (UnknownProvider, OverrideError) as error:
        raise ConfigError(str(error)) from None


def _put_around(client: Any, family: Family, settings: Settings) -> None:
    around: Any = family.transport if isinstance(client, family.module.Client) else family.async_transport
    client._transport = around(client._transport, family, settings)
    for pattern, transport in client._mounts.items():
        if transport is not None:  # None: a host that goes without a proxy, by the client's own transport
            client._mounts[pattern] = around(transport, family, settings)


def _settings_of(client: Any) -> Settings | None:
    transport = client._transport
    return transport.settings if isinstance(transport, SyncTransport | AsyncTransport) else None


def _inside(transport: Any) -> Any:
    return transport.inner if isinstance(transport, SyncTransport | AsyncTransport) else transport
