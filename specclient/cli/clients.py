"""From the options of a command to a target and a client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specclient.cli.terminal import note

if TYPE_CHECKING:
    from specclient.client import Client
    from specclient.config import Config, Target

# With one of these set, a call that names no target has one all the same.
_NAMING_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SPECCLIENT_PROVIDER", "SPECCLIENT_BASE_URL")


def read_config(
    path: Path | None, *, variables: bool = True, unknown_keys: list[str] | None = None
) -> Config:
    """The configuration; what is doubtful in it is told on stderr. `variables`: misspelt ones too.

    With a list for `unknown_keys` these are told there, and are no error.
    """
    import warnings

    from specclient.config import load_config
    from specclient.config.files import VariableWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not variables:
            warnings.simplefilter("ignore", VariableWarning)
        config = load_config(path, unknown_keys=unknown_keys)
    for warning in caught:
        note(f"warning: {warning.message}")
    return config


def pick_target(
    target: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    *,
    config: Path | None = None,
    **values: Any,
) -> tuple[Target, Config]:
    """The target that the options mean. With nothing named and nothing configured it is the engine."""
    from specclient.config import resolve_target

    loaded = read_config(config)
    named = target or provider or values.get("base_url") or loaded.default
    if not named and not any(os.environ.get(name) for name in _NAMING_VARIABLES):
        note("no target is configured: using the embedded engine (provider local)")
        provider = "local"
    return resolve_target(target, provider, model, config=loaded, **values), loaded


@contextmanager
def open_client(
    target: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    *,
    config: Path | None = None,
    **values: Any,
) -> Iterator[Client]:
    """A client for what the options mean; an engine that it needs is loaded first, in sight."""
    with client_of(*pick_target(target, provider, model, config=config, **values)) as client:
        yield client


@contextmanager
def client_of(target: Target, config: Config) -> Iterator[Client]:
    """A client for a target that was picked; an engine that it needs is loaded first, in sight."""
    from specclient.client import Client

    with Client(target=target, config=config) as client:
        if target.provider == "local":
            load_engine(target)
        yield client


def load_engine(target: Target) -> None:
    """Get the target's engine ready, so that no call waits for it unseen."""
    from specclient.cli.progress import EngineProgress
    from specclient.core import engines
    from specclient.core.local import LocalTransport

    with EngineProgress() as progress:
        engines.on_progress(progress)
        try:
            LocalTransport(target.model, target.engine).engine(None)
        finally:
            engines.on_progress(None)


def load_served(config: Config, **arguments: Any) -> str:
    """The target that a server with these settings asks by default; if it is the engine, it is loaded now.

    A first request would wait for it unseen, and a fetch takes minutes. Raises ConfigError for settings
    that the server would refuse.
    """
    from specclient.config import resolve_target
    from specclient.config.serving import ServeSettings

    names = ServeSettings.of(config, **arguments).targets or tuple(config.targets)
    name = config.default if config.default in names else next(iter(names), "local")
    target = (
        resolve_target(name, config=config)
        if name in config.targets
        else resolve_target(provider=name, config=config)
    )
    if target.provider == "local":
        load_engine(target)
    return name


def serving_config(
    target: str | None, provider: str | None, model: str | None, config: Path | None
) -> Config:
    """The configuration to serve; a target described by the options stands in it like any other."""
    from dataclasses import replace

    loaded = read_config(config)
    if target is None and provider is None and model is None:
        return loaded
    picked, _ = pick_target(target, provider, model, config=config)
    table = {name: getattr(picked, name) for name in picked.origins} | {"provider": picked.provider}
    origins = {f"{picked.name}.{name}": picked.origins.get(name, "argument") for name in table}
    return replace(
        loaded,
        default=picked.name,
        targets={**loaded.targets, picked.name: table},
        origins={**loaded.origins, **origins},
    )
