"""The targets that are served, each under its name as a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specclient.client import AsyncClient
from specclient.config import Config, Target, resolve_target
from specclient.errors import ConfigError
from specclient.gateway.answers import Problem
from specclient.tracing import TracingOptions


@dataclass(frozen=True, slots=True)
class Served:
    """A target chosen for one request; `model` is None where the target's own is meant."""

    client: AsyncClient
    target: Target
    model: str | None


class Unknown(Exception):
    """No target goes by the name that a request gives; `problem` says so."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Targets:
    """Clients by target name, made at first use and kept. A request's model is "target" or "target/model"."""

    def __init__(
        self, config: Config, names: tuple[str, ...] | None, tracing: TracingOptions, engine: Any = None
    ) -> None:
        self._config = config
        self._tracing = tracing
        self._engine = engine
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
                return self._served(name, rest)
            for name, target in self.resolved.items():
                if model == target.model:
                    return self._served(name, None)
        named = ", ".join(self.resolved)
        raise Unknown(
            Problem(
                404,
                f"No target is called that. Ask for one of: {named}; or a model of one, as TARGET/MODEL.",
                code="model_not_found",
                param="model",
            )
        )

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
