"""What both clients share: configuration made ready."""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn, Self

from specclient.client.elsewhere import check_arguments, missing
from specclient.client.logs import from_environment
from specclient.client.params import NotGiven, given_fields
from specclient.config import Config, Target, load_config, resolve_target
from specclient.config.files import UnknownTarget, unknown
from specclient.config.target import TargetFields, Timeout
from specclient.core.destination import CallOptions, Destination
from specclient.core.late import LateTransport
from specclient.core.learned import Learned
from specclient.core.send import Connect
from specclient.errors import ConfigError
from specclient.tracing.options import DEFAULT_OPTIONS, TracingOptions, what_is_wrong

DEFAULT_TIMEOUT = Timeout()
DEFAULT_MAX_RETRIES: int = TargetFields.model_fields["max_retries"].default


class ClientBase(ABC):
    """What both clients share.

    `target` names an entry of the configuration (see `specclient.config`); `provider` with `model`,
    `base_url` and `api_key` describes one on the spot; any other field of a target may be given too.
    `config` is a path or a loaded `Config`, `engine` a loaded engine for provider `local`, `tracing`
    how calls are traced (else the configuration's section [tracing] says). `default_headers` and
    `default_query` go with every request.
    Raises ConfigError for everything that is wrong with the configuration, before anything is sent.
    """

    def __init__(
        self,
        target: str | Target | None = None,
        *,
        provider: str | None = None,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: Any = NotGiven(),  # noqa: B008  a stateless mark
        max_retries: int | None = None,
        default_headers: Mapping[str, str] | None = None,
        default_query: Mapping[str, Any] | None = None,
        config: str | os.PathLike[str] | Config | None = None,
        profile: str | None = None,
        tracing: TracingOptions | None = None,
        engine: Any = None,
        max_connections: int = 1000,
        **fields: Any,
    ) -> None:
        check_arguments(fields)
        if type(max_connections) is not int or max_connections < 1:
            raise ConfigError(f"max_connections is a whole number of at least 1, not {max_connections!r}.")
        self._arguments = {
            "target": target,
            "provider": provider,
            "model": model,
            "base_url": base_url,
            "api_key": api_key,
            **fields,
        }
        if not isinstance(tracing, TracingOptions | None):
            raise ConfigError(f"tracing is a specclient.TracingOptions, not {type(tracing).__name__}.")
        from_environment()
        self._config_source = config
        self._profile = profile
        self._given_tracing = tracing
        self._engine = engine
        self._max_connections = max_connections
        self._closed = False
        self.learned = Learned()
        self.defaults = CallOptions(
            timeout=None if isinstance(timeout, NotGiven) else Timeout.of(timeout),
            max_retries=max_retries,
            headers=given_fields(default_headers, "default_headers"),
            query=given_fields(default_query, "default_query"),
        )
        self._transports: dict[Connect, Any] = {}
        self.destinations: list[Destination] = []
        self.reload()

    def reload(self) -> None:
        """Read the configuration again. Calls that are under way end as they began.

        Raises ConfigError for a configuration that is wrong; everything then stays as it was.
        """
        source = self._config_source
        config = source if isinstance(source, Config) else load_config(source, profile=self._profile)
        first = resolve_target(config=config, **self._arguments)
        tracing = self._given_tracing or tracing_of(config)
        destinations = [self._destination(target, config) for target in _chain(first, config)]
        self.tracing, self.destinations = tracing, destinations

    def _destination(self, target: Target, config: Config) -> Destination:
        if target.provider == "local":
            return Destination(target, config, self._local_transport(target), learned=self.learned)
        connect = Connect(target.proxy, target.verify, self._max_connections, target.client_cert)
        if connect not in self._transports:
            self._transports[connect] = LateTransport(partial(self._http_transport, connect))
        transport = self._transports[connect]
        if target.use_corpus:
            transport = self._corpus_transport(transport)
        return Destination(target, config, transport, learned=self.learned)

    def load_transports(self) -> None:
        """Import what the first call needs, before that call begins."""
        for transport in list(self._transports.values()):  # a reload may add one
            transport.made()

    @abstractmethod
    def _http_transport(self, connect: Connect) -> Any:
        """What carries requests over connections of this kind; asked for at the first request."""

    @abstractmethod
    def _corpus_transport(self, inner: Any) -> Any:
        """`inner`, with the known text loaded into the server's draft corpus around each exchange."""

    @abstractmethod
    def _local_transport(self, target: Target) -> Any:
        """The embedded engine with the target's model; it is loaded by the first call."""

    @property
    def target(self) -> Target:
        """The first target, resolved; its `origins` say where each value came from."""
        return self.destinations[0].target

    @property
    def base_url(self) -> Any:
        """The first target's address as an `httpx.URL`; None where it is the embedded engine."""
        import httpx

        found = self.destinations[0].facts("chat", self.target.model).base_url
        return None if found is None else httpx.URL(found.rstrip("/") + "/")

    @property
    def api_key(self) -> str | None:
        """The first target's key, in clear."""
        key = self.destinations[0].key
        return None if key is None else key.get_secret_value()

    @property
    def organization(self) -> str | None:
        return self.target.organization

    @property
    def project(self) -> str | None:
        return self.target.project

    @property
    def timeout(self) -> Timeout:
        """The limits of a call that names none."""
        return self.target.timeout if self.defaults.timeout is None else self.defaults.timeout

    @property
    def max_retries(self) -> int:
        """How often a call that names no number is asked again."""
        asked = self.defaults.max_retries
        return self.target.max_retries if asked is None else asked

    @property
    def default_headers(self) -> Mapping[str, str | None]:
        """What the client was given to go with every request."""
        return dict(self.defaults.headers)

    @property
    def default_query(self) -> Mapping[str, Any]:
        return dict(self.defaults.query)

    def with_options(
        self,
        *,
        timeout: Any = NotGiven(),  # noqa: B008
        max_retries: int | None = None,
        default_headers: Mapping[str, str] | None = None,
        default_query: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """A client over the same connections with other defaults.

        With a target or any of its fields it is a client of its own instead, over its own connections.
        """
        defaults = CallOptions(
            timeout=self.defaults.timeout if isinstance(timeout, NotGiven) else Timeout.of(timeout),
            max_retries=self.defaults.max_retries if max_retries is None else max_retries,
            headers={**self.defaults.headers, **given_fields(default_headers, "default_headers")},
            query={**self.defaults.query, **given_fields(default_query, "default_query")},
        )
        if fields:
            arguments = {**self._arguments, **fields}
            other = type(self)(
                **arguments,
                config=self._config_source,
                profile=self._profile,
                tracing=self._given_tracing,
                engine=self._engine,
                max_connections=self._max_connections,
            )
        else:
            other = object.__new__(type(self))
            cached = ("chat", "completions", "models")
            other.__dict__ = {name: value for name, value in self.__dict__.items() if name not in cached}
        other.defaults = defaults
        return other

    copy = with_options

    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def ensure_open(self) -> None:
        """Raises RuntimeError on a closed client."""
        if self._closed:
            raise RuntimeError("This client is closed; make a new one.")

    def __getattr__(self, name: str) -> NoReturn:
        raise missing(self, name)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} cannot be pickled: it holds connections and a key. "
            f"Pass the target's name and make a client in the other process."
        )

    def __repr__(self) -> str:
        name, target = type(self).__name__, self.target
        return f"{name}(target={target.name!r}, provider={target.provider!r}, model={target.model!r})"


def tracing_of(config: Config) -> TracingOptions:
    """The options of the configuration's section [tracing]. Raises ConfigError for a wrong key or value."""
    section = dict(config.settings.get("tracing", {}))
    if not section:
        return DEFAULT_OPTIONS
    known = [f.name for f in dataclasses.fields(TracingOptions) if not f.name.endswith("_provider")]
    for key, value in section.items():
        if key not in known:
            raise ConfigError(f"{config.path}: {unknown('key', key, known, 'tracing.')}")
        if (said := what_is_wrong(key, value)) is not None:
            raise ConfigError(f"{config.path}: tracing.{key}: {said}.")
    return TracingOptions(**section)


def _chain(first: Target, config: Config) -> list[Target]:
    """The first target and its fallbacks, theirs included, each name once."""
    chain, names = [first], {first.name}
    for target in chain:
        for name in target.fallback:
            if name in names:
                continue
            names.add(name)
            try:
                chain.append(resolve_target(name, config=config))
            except UnknownTarget:
                raise UnknownTarget(config, name, target.origins.get("fallback", "fallback")) from None
    if first.on_unsupported == "local" and all(target.provider != "local" for target in chain):
        chain.append(resolve_target(provider="local", config=config))
    return chain
