"""The targets that are served, each under its name as a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from specclient.client import AsyncClient
from specclient.config import Config, Target, resolve_target
from specclient.core.engines import is_known
from specclient.errors import ConfigError
from specclient.gateway.answers import Problem
from specclient.tracing import TracingOptions

_SHOWN = 80
"""Characters of a name that an answer repeats."""


@dataclass(frozen=True, slots=True)
class Served:
    """A target chosen for one request; `model` is None where the target's own is meant."""

    client: AsyncClient
    target: Target
    model: str | None


class Unknown(Exception):
    """No target goes by the name that a request gives, or not for that model; `problem` says so."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Targets:
    """Clients by target name, made at first use and kept. A request's model is "target" or "target/model".

    Besides its own model a target serves those that `models` allows (patterns of "target/model"). By default
    that is whatever its server has, and of the embedded engine what it knows by name: a path is no such name,
    since a client must not choose what is read here.
    """

    def __init__(
        self,
        config: Config,
        names: tuple[str, ...] | None,
        tracing: TracingOptions,
        engine: Any = None,
        *,
        models: tuple[str, ...] | None = None,
    ) -> None:
        self._config = config
        self._tracing = tracing
        self._engine = engine
        self._models = models
        self._clients: dict[str, AsyncClient] = {}
        known = names if names is not None else tuple(config.targets) or ("local",)
        self.resolved: Mapping[str, Target] = {name: self._resolve(name) for name in known}
        self.default = config.default if config.default in self.resolved else next(iter(self.resolved))

    def _resolve(self, name: str) -> Target:
        if name == "local" and name not in self._config.targets:
            return resolve_target(provider="local", config=self._config)
        return resolve_target(name, config=self._config)

    def choose(self, model: Any) -> Served:
        """The target that a request's `model` means. Raises Unknown."""
        if model is None:
            return self._served(self.default, None)
        if isinstance(model, str):
            name, slash, rest = model.partition("/")
            if model in self.resolved:
                return self._served(model, None)
            if slash and name in self.resolved:
                if not self._allows(name, rest):
                    raise Unknown(_not_served(name))
                return self._served(name, rest)
            for name, target in self.resolved.items():
                if model == target.model:
                    return self._served(name, None)
        raise Unknown(self.unknown(model))

    def unknown(self, model: Any) -> Problem:
        """What is said of a name that no target goes by."""
        called = f"called {model[:_SHOWN]!r}" if isinstance(model, str) else "named so: a name is text"
        return Problem(
            404,
            f"No target is {called}. Ask for one of: {', '.join(self.resolved)}; or an allowed "
            f"model of one, as TARGET/MODEL.",
            code="model_not_found",
            param="model",
        )

    def _allows(self, name: str, model: str) -> bool:
        target = self.resolved[name]
        if model == target.model:
            return True
        if self._models is None:
            return target.provider != "local" or is_known(model)
        return any(fnmatchcase(f"{name}/{model}", pattern) for pattern in self._models)

    def _served(self, name: str, model: str | None) -> Served:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = AsyncClient(
                self.resolved[name], config=self._config, tracing=self._tracing, engine=self._engine
            )
        return Served(client, self.resolved[name], model)

    def check(self) -> None:
        """Make every client now. Raises ConfigError for a target that cannot work (a key that is missing)."""
        for name in self.resolved:
            try:
                self._served(name, None)
            except ConfigError as error:
                raise ConfigError(f"Target {name!r} cannot be served: {error}") from None

    async def close(self) -> None:
        await asyncio.gather(*(client.close() for client in self._clients.values()))


def _not_served(name: str) -> Problem:
    """The same for every model, so that nothing is told of what this machine has."""
    return Problem(
        404,
        f"Target {name!r} does not serve that model: ask for {name}, or have it allowed by serve.models.",
        code="model_not_found",
        param="model",
    )
