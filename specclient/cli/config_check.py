"""What is wrong with a configuration: everything that can be known before anything is sent."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from specclient.config import Config, resolve_target
from specclient.config.variables import sentence, unread
from specclient.core.destination import Destination
from specclient.errors import ConfigError


def of_target(config: Config, name: str, *, keys: bool = True) -> str | None:
    """What would stop a call to the target, or None. Without `keys` no key is looked for."""
    try:
        target = resolve_target(name, config=config)
        if not keys:
            target = replace(target, api_key=SecretStr("-"))  # comes before all other sources
        Destination(target, replace(config, env=config.env or os.environ), transport=None)
        for other in target.fallback:
            resolve_target(other, config=config)
    except ConfigError as error:
        return str(error)
    return None


def of_config(config: Config) -> dict[str, str]:
    """What is wrong beside the targets, by its place in the file or by the variable's name."""
    found: dict[str, str] = {}
    if config.default not in (None, "local", *config.targets):
        try:
            resolve_target(config=config)
        except ConfigError as error:
            found["default"] = str(error)
    for section, read in (("tracing", _tracing), ("serve", _serve)):
        try:
            read(config)
        except ConfigError as error:
            found[section] = str(error)
    return found


def of_variables(config: Config) -> tuple[dict[str, str], list[str]]:
    """What is wrong with the environment: misspelt names, and those that are like none that is read."""
    found = unread(config.env or os.environ, config.targets, config.settings)
    misspelt = {name: sentence(name, meant) for name, meant in found.items() if meant}
    return misspelt, [sentence(name, None) for name, meant in found.items() if meant is None]


def _tracing(config: Config) -> Any:
    from specclient.client.base import tracing_of

    return tracing_of(config)


def _serve(config: Config) -> Any:
    if "serve" not in config.settings:
        return None
    try:
        from specclient.gateway.settings import ServeSettings
    except ImportError:  # nobody can serve where the server's libraries are not installed
        return None
    return ServeSettings.of(config)
