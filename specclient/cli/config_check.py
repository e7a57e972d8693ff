"""What is wrong with a configuration: everything that can be known before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from specclient.config import FIELDS, Config, Target, resolve_target
from specclient.config.files import UnknownTarget
from specclient.config.variables import sentence, unread
from specclient.core.destination import Destination
from specclient.errors import ConfigError
from specclient_providers import UnknownProvider, resolve
from specclient_providers.signs import UNNAMED


def of_target(
    config: Config, name: str, *, keys: bool = True, apart: Collection[str] = ()
) -> tuple[str, ...]:
    """Everything that would stop a call to the target. Without `keys` no key is looked for.

    What is wrong with its fallbacks is told too, but for those in `apart`, which are checked by themselves.
    """
    found: list[str] = []
    target = _resolved(config, name, found)
    if target is None:
        return tuple(found)
    if not keys:
        target = replace(target, **_KEY)
    for mended in _mended(target):
        try:
            Destination(mended, replace(config, env=config.env or os.environ), transport=None)
        except ConfigError as error:
            found.append(str(error))
        else:
            break
    for other in target.fallback:
        if other in apart:
            continue
        try:
            resolve_target(other, config=config)
        except UnknownTarget:
            found.append(str(UnknownTarget(config, other, target.origins["fallback"])))
        except ConfigError as error:
            found.append(str(error))
    return tuple(dict.fromkeys(found))


_KEY: dict[str, Any] = {"api_key": SecretStr("-")}  # comes before all other sources
_ADDRESS = "http://localhost"


def _resolved(config: Config, name: str, found: list[str]) -> Target | None:
    """The target, without those of its fields that are wrong; what is wrong with them goes to `found`."""
    table = dict(config.targets[name])
    for field in list(table):
        try:
            resolve_target(name, config=_with(config, name, {"provider": "local", field: table[field]}))
        except ConfigError as error:
            found.append(str(error))
            del table[field]
    try:
        return resolve_target(name, config=_with(config, name, table))
    except ConfigError as error:
        found.append(str(error))
    return None


def _with(config: Config, name: str, table: dict[str, Any]) -> Config:
    origins = {f"{name}.provider": "default", **config.origins}
    return replace(config, targets={**config.targets, name: table}, origins=origins)


def _mended(target: Target) -> Iterator[Target]:
    """The target, then with one thing more put right at each step, so that the next fault shows."""
    yield target
    try:
        resolve(target.provider)
    except UnknownProvider:
        target = replace(target, provider=UNNAMED, base_url=target.base_url or _ADDRESS)
        yield target
    steps: tuple[dict[str, Any], ...] = (
        {"overrides": {}},
        _KEY,
        {"verify": True},
        {"client_cert": None},
        {"base_url": _ADDRESS},
    )
    for step in steps:
        target = replace(target, **step)
        yield target


def of_config(config: Config) -> dict[str, str]:
    """What is wrong beside the targets, by its place in the file or by the variable's name."""
    found: dict[str, str] = {}
    if config.default not in (None, "local", *config.targets):
        try:
            resolve_target(config=config)
        except ConfigError as error:
            found["default"] = str(error)
    found |= _of_the_defaults_variables(config.env or os.environ)
    for section, read in (("tracing", _tracing), ("serve", _serve)):
        if said := _of_section(config, section, read):
            found[section] = " ".join(said)
    return found


def _of_the_defaults_variables(env: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with each of the variables that set a field of the default target, each alone."""
    found: dict[str, str] = {}
    for name in (f"SPECCLIENT_{field.upper()}" for field in FIELDS):
        if name not in env:
            continue
        alone = Config(path=None, default=None, env={"SPECCLIENT_PROVIDER": "local", name: env[name]})
        try:
            resolve(resolve_target(config=alone).provider)
        except ConfigError as error:
            found[name] = str(error)
        except UnknownProvider as error:
            found[name] = f"{name}: {error}"
    return found


def _of_section(config: Config, section: str, read: Callable[[Config], Any]) -> list[str]:
    """What is wrong with a section: with each key alone, or else with all of them together."""
    table = config.settings.get(section, {})
    single = [{section: {key: value}} for key, value in table.items()]
    said = [_said(read, replace(config, settings=settings)) for settings in single]
    wrong = [text for key, text in zip(table, said, strict=True) if text and f"{section}.{key}" in text]
    whole = _said(read, config)
    return wrong or ([whole] if whole else [])


def _said(read: Callable[[Config], Any], config: Config) -> str:
    try:
        read(config)
    except ConfigError as error:
        return str(error)
    return ""


def of_variables(config: Config) -> tuple[dict[str, str], list[str]]:
    """What is wrong with the environment: misspelt names, and those that are like none that is read."""
    found = unread(config.env or os.environ, config.targets, config.settings)
    misspelt = {name: sentence(name, meant) for name, meant in found.items() if meant}
    return misspelt, [sentence(name, None) for name, meant in found.items() if meant is None]


def _tracing(config: Config) -> Any:
    from specclient.client.base import tracing_of

    return tracing_of(config)


def _serve(config: Config) -> Any:
    from specclient.config.serving import ServeSettings

    return ServeSettings.of(config) if "serve" in config.settings else None
