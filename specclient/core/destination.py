"""A target made ready: its facts, its key, its transport, and what was learnt about it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from pydantic import SecretStr

from specclient.config import Config, Target, Timeout, api_key
from specclient.config.places import is_there
from specclient.config.sendable import fault_in_header_value
from specclient.core.breaker import Breaker
from specclient.core.learned import Learned
from specclient.core.send import DEFAULT_HEADERS, Connect, Send
from specclient.economics.account import Economist
from specclient.errors import ConfigError
from specclient_providers import EndpointFacts, OverrideError, UnknownProvider, resolve
from specclient_providers.signs import GATEWAY, UNNAMED, is_gateway

if TYPE_CHECKING:
    from specclient.core.plan import Plan, Policy
    from specclient_providers.detection import Detected

_FACTS_SECONDS = 60.0
"""Facts hold for a day; a long-lived client notices midnight within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What one call sets apart from its body. None means: as the target says.

    `idempotency_key` is sent as `Idempotency-Key` with every try at one target. `workload` names the kind
    of call for the economics; None: the block it is made in, else the target's tag.
    """

    timeout: Timeout | None = None
    max_retries: int | None = None
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    query: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    workload: str | None = None
    adapter: str = "client"


class Destination:
    """One target of a client, with everything that its calls share. `transport` opens exchanges."""

    def __init__(
        self, target: Target, config: Config, transport: Any, *, learned: Learned | None = None
    ) -> None:
        self.target = target
        self.transport = transport
        self.breaker = Breaker()
        self.learned = learned or Learned()
        self.economist = Economist.of(target)
        self._facts: dict[tuple[str, str | None], EndpointFacts] = {}
        self._facts_until = 0.0
        self._found: Detected | None = None
        endpoint = self.facts("chat", target.model)
        self.key: SecretStr | None = (
            None
            if endpoint.in_process
            else api_key(
                target,
                config.env,
                key_env=endpoint.key_env,
                directory=config.directory,
                required=not endpoint.self_hosted,
            )
        )
        self._check_key(endpoint)
        self._check_certificates()
        if not endpoint.in_process and endpoint.base_url is None:
            hint = next((text for text in endpoint.restrictions if re.search("base[ _]url", text, re.I)), "")
            lacks = (
                f"Target {target.name!r} has no base_url, and provider {target.provider} has none of its own."
            )
            raise ConfigError(f"{lacks} {hint}".rstrip())
        if endpoint.base_url is not None and urlsplit(endpoint.base_url).scheme not in ("http", "https"):
            shown = endpoint.base_url.rpartition("@")[2]
            raise ConfigError(
                f"{target.origins.get('base_url', 'argument')}: base_url {shown!r} of target {target.name!r} "
                f"does not begin with http:// or https://."
            )
        try:
            _ = self.address
        except ValueError as error:
            raise ConfigError(
                f"{target.origins.get('base_url', 'argument')}: base_url of target {target.name!r} "
                f"is no address: {error}."
            ) from None

    def _check_certificates(self) -> None:
        target = self.target
        try:
            Connect(verify=target.verify).check()
        except ConfigError as error:
            raise ConfigError(f"{target.origins.get('verify', 'argument')}: {error}") from None
        origin = target.origins.get("client_cert", "argument")
        if target.client_cert is not None and not is_there(target.client_cert):
            raise ConfigError(
                f"{origin}: client_cert of target {target.name!r} is a PEM file with a certificate and its "
                f"key; there is no {target.client_cert!r}."
            )
        try:
            Connect(client_cert=target.client_cert).check()
        except ConfigError as error:
            raise ConfigError(f"{origin}: {error}") from None

    def _check_key(self, endpoint: EndpointFacts) -> None:
        if self.key is None:
            return
        said = fault_in_header_value(endpoint.auth.value(self.key.get_secret_value()))
        if said is not None:
            raise ConfigError(
                f"{self.target.origins.get('api_key', 'the key')}: what is sent as the key of target "
                f"{self.target.name!r} {said}."
            )

    @property
    def name(self) -> str:
        return self.target.name

    def facts(self, api: str, model: str | None) -> EndpointFacts:
        """The facts for an API kind and model, today. Raises ConfigError for a wrong provider or override."""
        place, now = (api, model), time.monotonic()
        if now > self._facts_until:
            self._facts_until = now + _FACTS_SECONDS
            self._facts = {}
        known = self._facts
        if place not in known:
            target = self.target
            try:
                known[place] = resolve(
                    self._provider,
                    model=model,
                    api=api,
                    api_version=target.api_version,
                    base_url=target.base_url,
                    overrides={**(self._found.overrides if self._found else {}), **target.overrides},
                    origin=target.origins.get("overrides"),
                )
            except UnknownProvider as error:
                origin = target.origins.get("provider", "argument")
                # What the caller wrote needs no place: the sentence names it.
                raise ConfigError(str(error) if origin == "argument" else f"{origin}: {error}") from None
            except OverrideError as error:
                raise ConfigError(str(error)) from None
        return known[place]

    @property
    def _provider(self) -> str:
        """The configured provider; where that names no server, the one that was found."""
        unnamed = self.target.provider == UNNAMED
        return self._found.provider if self._found is not None and unnamed else self.target.provider

    @property
    def wants_detection(self) -> bool:
        """Whether the target asks for it, and there is still something to find out."""
        if not self.target.detect or self._found is not None:
            return False
        facts = self.facts("chat", self.target.model)
        unnamed = facts.provider == UNNAMED
        return not facts.in_process and (unnamed or (facts.self_hosted and facts.speculation.method is None))

    def take(self, found: Detected) -> None:
        """Fill in from a finding what the configuration leaves open."""
        self._found = found
        self._facts = {}

    def heard(self, headers: Mapping[str, str]) -> None:
        """Take note of who signed an answer, by lower-case name: our own gateway takes predictions."""
        unnamed = self._found is None and self.target.provider == UNNAMED
        if unnamed and is_gateway(headers.get("server", "")):
            from specclient_providers.detection import Detected

            self.take(Detected(server="specclient gateway", provider=GATEWAY))

    @property
    def address(self) -> tuple[str | None, int | None]:
        """Host and port of the endpoint; (None, None) in process."""
        parts = urlsplit(self.facts("chat", self.target.model).base_url or "")
        return parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)

    @property
    def policy(self) -> Policy:
        from specclient.core.plan import Policy

        target = self.target
        return Policy(target.on_unsupported, target.put_in_prompt, target.use_corpus)

    def send(self, plan: Plan, options: CallOptions, extra: Mapping[str, str]) -> Send:
        """The wire request of a plan; `extra` are headers of the call's own (trace context)."""
        if plan.facts.in_process:
            return Send("POST", "local:", {}, streamed=plan.body.get("stream") is True, plan=plan)
        if not plan.path:
            hint = "" if plan.facts.speaks_openai else " ".join(plan.facts.restrictions)
            lacks = (
                f"{plan.facts.title} has no {plan.facts.api} API of OpenAI's shape (target {self.name!r})."
            )
            raise ConfigError(f"{lacks} {hint}".rstrip())
        return self.request(
            "POST",
            plan.path,
            body=encoded(plan.body),
            query=plan.query,
            headers={**plan.headers, **extra},
            options=options,
            streamed=plan.body.get("stream") is True,
            plan=plan,
        )

    def request(
        self,
        method: str,
        path: str,
        *,
        options: CallOptions,
        body: bytes = b"",
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        streamed: bool = False,
        plan: Plan | None = None,
    ) -> Send:
        """A request to this target's endpoint, with its key and the headers of every layer."""
        facts = self.facts("chat", self.target.model)
        parts = urlsplit(facts.base_url or "")
        merged = {**(query or {}), **self.target.query, **options.query}
        url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}"
        if merged:
            url += "?" + urlencode({k: v for k, v in merged.items() if v is not None}, doseq=True)
        return Send(
            method,
            url,
            self._headers(facts, headers or {}, options, body=bool(body), streamed=streamed),
            body,
            streamed,
            self.target.max_response_bytes,
            plan,
        )

    def _headers(
        self,
        facts: EndpointFacts,
        plan: Mapping[str, str],
        options: CallOptions,
        *,
        body: bool,
        streamed: bool,
    ) -> dict[str, str]:
        target = self.target
        headers: dict[str, str] = dict(DEFAULT_HEADERS)
        if body:
            headers["content-type"] = "application/json"
        if streamed:
            headers["accept"] = "text/event-stream"
        if self.key is not None:
            headers[facts.auth.header.lower()] = facts.auth.value(self.key.get_secret_value())
        if target.organization:
            headers["openai-organization"] = target.organization
        if target.project:
            headers["openai-project"] = target.project
        if options.idempotency_key:
            headers["idempotency-key"] = options.idempotency_key
        for layer in (plan, target.headers, options.headers):
            for name, value in layer.items():
                if value is None:
                    headers.pop(name.lower(), None)
                elif isinstance(value, str):
                    headers[name.lower()] = value
                else:
                    raise ConfigError(f"The value of header {name} is text, not {type(value).__name__}.")
        return headers


def encoded(body: Mapping[str, Any]) -> bytes:
    """A body as JSON. Raises ConfigError for what JSON cannot say, naming the key and never the value."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()  # lone surrogates, escaped
    except (TypeError, ValueError):
        for key, value in body.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ConfigError(
                    f"The value of {key!r} cannot be sent as JSON: {type(error).__name__}."
                ) from None
        raise ConfigError("The request cannot be sent as JSON.") from None
