"""`Client` and `AsyncClient`: configuration made ready, and the resources over it."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from pydantic import TypeAdapter, ValidationError

from specclient.client.logs import from_environment
from specclient.client.params import NotGiven
from specclient.config import Config, Target, load_config, resolve_target
from specclient.config.files import unknown
from specclient.config.target import Timeout
from specclient.core.destination import CallOptions, Destination
from specclient.core.http import Connect
from specclient.core.learned import Learned
from specclient.errors import ConfigError
from specclient.tracing import DEFAULT_OPTIONS, TracingOptions

if TYPE_CHECKING:
    from specclient.client.more_resources import AsyncModels, AsyncTextCompletions, Models, TextCompletions
    from specclient.client.resources import AsyncChat, Chat
    from specclient.edit import FileEdit

_ELSEWHERE = [
    "audio",
    "batches",
    "beta",
    "containers",
    "conversations",
    "embeddings",
    "evals",
    "files",
    "fine_tuning",
    "images",
    "moderations",
    "realtime",
    "responses",
    "uploads",
    "vector_stores",
    "videos",
    "webhooks",
]


class ClientBase:
    """What both clients share.

    `target` names an entry of the configuration (see `specclient.config`); `provider` with `model`,
    `base_url` and `api_key` describes one on the spot; any other field of a target may be given too.
    `config` is a path or a loaded `Config`, `engine` a loaded engine for provider `local`, `tracing`
    how calls are traced (else the configuration's section [tracing] says). `default_headers` and
    `default_query` go with every request.
    Raises ConfigError for everything that is wrong with the configuration, before anything is sent.
    """

    _asynchronous: ClassVar[bool] = False

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
        if "http_client" in fields:
            raise TypeError(
                "http_client= is not taken: use proxy=, verify= and max_connections=, or keep the "
                "official SDK with its own client and pass it to specclient.wrap()."
            )
        self._arguments = {
            "target": target,
            "provider": provider,
            "model": model,
            "base_url": base_url,
            "api_key": api_key,
            **fields,
        }
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
            headers=default_headers or {},
            query=default_query or {},
        )
        self._transports: dict[Connect, Any] = {}
        self.destinations: list[Destination] = []
        self.reload()

    def reload(self) -> None:
        """Read the configuration again. Calls that are under way end as they began."""
        source = self._config_source
        config = source if isinstance(source, Config) else load_config(source, profile=self._profile)
        first = resolve_target(config=config, **self._arguments)
        self.tracing = self._given_tracing or tracing_of(config)
        self.destinations = [self._destination(target, config) for target in _chain(first, config)]

    def _destination(self, target: Target, config: Config) -> Destination:
        if target.provider == "local":
            return Destination(target, config, self._local_transport(target), learned=self.learned)
        connect = Connect(target.proxy, target.verify, self._max_connections)
        if connect not in self._transports:
            self._transports[connect] = self._http_transport(connect)
        transport = self._transports[connect]
        if target.use_corpus:
            transport = self._corpus_transport(transport)
        return Destination(target, config, transport, learned=self.learned)

    def _http_transport(self, connect: Connect) -> Any:
        raise NotImplementedError

    def _corpus_transport(self, inner: Any) -> Any:
        raise NotImplementedError

    def _local_transport(self, target: Target) -> Any:
        raise NotImplementedError

    @property
    def target(self) -> Target:
        """The first target, resolved; its `origins` say where each value came from."""
        return self.destinations[0].target

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
            headers={**self.defaults.headers, **(default_headers or {})},
            query={**self.defaults.query, **(default_query or {})},
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
        if name in _ELSEWHERE:
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}: it speaks chat completions, completions and models. "
                f"Use the official SDK for the rest; specclient.wrap(client) adds reports to it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
    kinds = typing.get_type_hints(TracingOptions)
    for key, value in section.items():
        if key not in known:
            raise ConfigError(f"{config.path}: {unknown('key', key, known, 'tracing.')}.")
        try:
            TypeAdapter(kinds[key]).validate_python(value, strict=True)
        except ValidationError as error:
            said = error.errors(include_input=False, include_url=False)[0]["msg"]
            raise ConfigError(f"{config.path}: tracing.{key}: {said[:1].lower() + said[1:]}.") from None
    return TracingOptions(**section)


def _chain(first: Target, config: Config) -> list[Target]:
    """The first target and its fallbacks, theirs included, each name once."""
    chain, names = [first], {first.name}
    for target in chain:
        for name in target.fallback:
            if name in names:
                continue
            names.add(name)
            chain.append(resolve_target(name, config=config))
    if first.on_unsupported == "local" and all(target.provider != "local" for target in chain):
        chain.append(resolve_target(provider="local", config=config))
    return chain


class Client(ClientBase):
    """The synchronous client. Safe to use from several threads; close it, or leave its `with` block."""

    def _http_transport(self, connect: Connect) -> Any:
        from specclient.core.http_sync import HttpTransport

        return HttpTransport(connect)

    def _corpus_transport(self, inner: Any) -> Any:
        from specclient.core.corpus import CorpusTransport

        return CorpusTransport(inner)

    def _local_transport(self, target: Target) -> Any:
        from specclient.core.local import LocalTransport

        return LocalTransport(target.model, target.engine, engine=self._engine)

    @cached_property
    def chat(self) -> Chat:
        from specclient.client.resources import Chat

        return Chat(self)

    @cached_property
    def completions(self) -> TextCompletions:
        from specclient.client.more_resources import TextCompletions

        return TextCompletions(self)

    @cached_property
    def models(self) -> Models:
        from specclient.client.more_resources import Models

        return Models(self)

    def edit(self, path: str | os.PathLike[str], instruction: str, **options: Any) -> FileEdit:
        """Regenerate a file with an edit, the file as the prediction: see `specclient.edit`."""
        from specclient.edit import edit_file

        return edit_file(self, path, instruction, **options)

    def close(self) -> None:
        """Close the connections. Clients made by `with_options` share them."""
        self._closed = True
        for destination in self.destinations:
            destination.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(ClientBase):
    """The asynchronous client, with the same signatures. Usable from several event loops."""

    def _http_transport(self, connect: Connect) -> Any:
        from specclient.core.http_async import AsyncHttpTransport

        return AsyncHttpTransport(connect)

    def _corpus_transport(self, inner: Any) -> Any:
        from specclient.core.corpus import AsyncCorpusTransport

        return AsyncCorpusTransport(inner)

    def _local_transport(self, target: Target) -> Any:
        from specclient.core.local import AsyncLocalTransport

        return AsyncLocalTransport(target.model, target.engine, engine=self._engine)

    @cached_property
    def chat(self) -> AsyncChat:
        from specclient.client.resources import AsyncChat

        return AsyncChat(self)

    @cached_property
    def completions(self) -> AsyncTextCompletions:
        from specclient.client.more_resources import AsyncTextCompletions

        return AsyncTextCompletions(self)

    @cached_property
    def models(self) -> AsyncModels:
        from specclient.client.more_resources import AsyncModels

        return AsyncModels(self)

    async def edit(self, path: str | os.PathLike[str], instruction: str, **options: Any) -> FileEdit:
        """Regenerate a file with an edit, the file as the prediction: see `specclient.edit`."""
        from specclient.edit import edit_file_async

        return await edit_file_async(self, path, instruction, **options)

    async def close(self) -> None:
        """Close this event loop's connections. Clients made by `with_options` share them."""
        self._closed = True
        for destination in self.destinations:
            await destination.transport.close()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _like_openai(arguments: dict[str, Any]) -> dict[str, Any]:
    """What `OpenAI(...)` means: OpenAI itself, or the address that it is given, with OPENAI_API_KEY."""
    if not any(arguments.get(name) for name in ("target", "provider")):
        url = arguments.get("base_url") or os.environ.get("OPENAI_BASE_URL")
        if url:
            arguments["base_url"] = str(url)
            if not arguments.get("api_key") and os.environ.get("OPENAI_API_KEY"):
                arguments["api_key_env"] = "OPENAI_API_KEY"
        else:
            arguments["provider"] = "openai"
    return arguments


class OpenAI(Client):
    """`Client` for those who swap an import: without arguments it is OpenAI, from OPENAI_API_KEY.

    With a `base_url` it is whoever answers there; what is documented of that address holds.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**_like_openai(arguments))


class AsyncOpenAI(AsyncClient):
    """The async twin of `OpenAI`."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**_like_openai(arguments))
