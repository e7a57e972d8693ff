"""Arguments over environment over file over defaults, for one target."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from specclient.config.files import Config, UnknownTarget, load_config, unknown
from specclient.config.target import FIELDS, OFF, ON, Target, TargetFields
from specclient.config.variables import variable_of
from specclient.errors import ConfigError

_KEY_SOURCES = ("api_key", "api_key_env", "api_key_file", "api_key_command")
_OWN = ("provider", "base_url", "model", *_KEY_SOURCES)
"""Fields that a target described by arguments does not take from `SPECCLIENT_…`: they belong to another."""


def resolve_target(
    target: str | Target | None = None,
    provider: str | None = None,
    model: str | None = None,
    *,
    config: Config | None = None,
    env: Mapping[str, str] | None = None,
    **values: Any,
) -> Target:
    """One target out of all layers.

    `target` names one of the configuration (or is a Target, which is then only overlaid). Without it,
    `provider` or `base_url` describe one on the spot; else it is the configuration's default; else the
    OpenAI variables of the environment. A target called `local` is the embedded engine where the
    configuration has none of that name. An argument that is None is taken as not given.
    Raises ConfigError in one sentence that names the layer and the key, and for a target's name beside a
    provider.
    """
    config = config or load_config(env=env)
    env = config.env or os.environ if env is None else env
    arguments = {"provider": provider, "model": model, **values}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    for field in arguments:
        if field not in FIELDS:
            raise ConfigError(f"argument: {unknown('target field', field, FIELDS)}")
    if isinstance(target, Target):
        return _overlay(target, arguments)
    if target is not None and provider is not None:
        raise ConfigError(f"Name target {target!r} or provider {provider!r}, not both: a target has its own.")
    on_the_spot = target is None and ("provider" in arguments or "base_url" in arguments)
    named = target is not None
    name: str | None = target if named else None if on_the_spot else config.default
    layers: list[dict[str, tuple[Any, str]]] = [{k: (v, "argument") for k, v in arguments.items()}]
    if target is None:
        layers.append(_environment(env, "SPECCLIENT_", on_the_spot=on_the_spot))
    if name is not None:
        variables = _environment(env, variable_of(name))
        layers.append(variables)
        if name in config.targets:
            table = config.targets[name]
            layers.append({k: (v, config.origins[f"{name}.{k}"]) for k, v in table.items()})
        elif name == "local":  # the embedded engine needs no entry
            layers.append({"provider": ("local", "default")})
        elif "provider" not in variables and "base_url" not in variables:
            origin = "argument target" if named else "default target"
            raise UnknownTarget(config, name, origin)
    layers.append(_openai_environment(env, layers, named=name is not None))
    return _build(name, _merge(layers))


def _environment(
    env: Mapping[str, str], prefix: str, *, on_the_spot: bool = False
) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for field in FIELDS:
        variable = prefix + field.upper()
        if variable in env and not (on_the_spot and field in _OWN):
            found[field] = (_from_text(field, env[variable], variable), variable)
    return found


def _from_text(field: str, text: str, variable: str) -> Any:
    if field in ("fallback",):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if field in ("prefer_prediction", "retry_after_content"):
        if text.lower() not in (*ON, *OFF):
            raise ConfigError(f"{variable}: true or false is expected, not {text!r}.")
        return text.lower() in ON
    if field == "timeout":
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"{variable}: a number of seconds is expected, not {text!r}.") from None
    if field in ("headers", "query", "overrides", "prices", "tags", "economics"):
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigError(f"{variable}: a JSON object is expected.") from None
    return text


def _openai_environment(
    env: Mapping[str, str], layers: list[dict[str, tuple[Any, str]]], *, named: bool
) -> dict[str, tuple[Any, str]]:
    """The variables of OpenAI's SDK, for provider openai and for calls that name nothing at all."""
    provider = next((layer["provider"][0] for layer in layers if "provider" in layer), None)
    has_url = any("base_url" in layer for layer in layers)
    implied = not named and provider is None and not has_url
    found: dict[str, tuple[Any, str]] = {}
    if implied and (env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL")):
        if not env.get("OPENAI_BASE_URL"):
            found["provider"] = ("openai", "OPENAI_API_KEY")
    elif provider != "openai":
        return {}
    if (url := env.get("OPENAI_BASE_URL")) and not has_url:
        found["base_url"] = (url, "OPENAI_BASE_URL")
        found["api_key_env"] = (
            ("OPENAI_API_KEY", "OPENAI_BASE_URL") if env.get("OPENAI_API_KEY") else (None, "default")
        )
    for field, variable in (("organization", "OPENAI_ORG_ID"), ("project", "OPENAI_PROJECT_ID")):
        if env.get(variable):
            found[field] = (env[variable], variable)
    if text := env.get("OPENAI_CUSTOM_HEADERS"):
        pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
        found["headers"] = ({k.strip(): v.strip() for k, _, v in pairs}, "OPENAI_CUSTOM_HEADERS")
    return found


def _merge(layers: list[dict[str, tuple[Any, str]]]) -> dict[str, tuple[Any, str]]:
    """The first layer that has a field wins; of the four sources of a key, the first layer's one alone."""
    merged: dict[str, tuple[Any, str]] = {}
    has_key = False
    for layer in layers:
        for field, value in layer.items():
            if not (field in _KEY_SOURCES and has_key):
                merged.setdefault(field, value)
        has_key = has_key or any(field in layer for field in _KEY_SOURCES)
    return merged


def _build(name: str | None, merged: dict[str, tuple[Any, str]]) -> Target:
    provider = merged.get("provider", (None, ""))[0]
    if provider is None:
        url = merged.get("base_url", (None, ""))[0]
        if url is None:
            if name is None:
                raise ConfigError(
                    "No target: name one of a specclient.toml (target=), or pass provider= (with 'local' "
                    "nothing else is needed)."
                )
            raise ConfigError(f"Target {name!r} has no provider: set targets.{name}.provider.")
        from specclient_providers import provider_at

        merged["provider"] = (provider_at(_host(url)), merged["base_url"][1])
    try:
        fields = TargetFields(**{key: value for key, (value, _) in merged.items() if value is not None})
    except ValidationError as error:
        raise _invalid(error, merged) from None
    sources = [field for field in _KEY_SOURCES if getattr(fields, field) is not None]
    if len(sources) > 1:
        raise ConfigError(
            f"{merged[sources[0]][1]}: give one source for the key, not {' and '.join(sources)}."
        )
    values = {field: getattr(fields, field) for field in FIELDS}
    values["provider"] = str(values["provider"])
    return Target(
        name=name or values["provider"], origins={k: origin for k, (_, origin) in merged.items()}, **values
    )


def _host(url: Any) -> str:
    """The host of an address; "" where it has none, which the address's own check will tell."""
    try:
        return urlsplit(url).hostname or "" if isinstance(url, str) else ""
    except ValueError:
        return ""


def _invalid(error: ValidationError, merged: Mapping[str, tuple[Any, str]]) -> ConfigError:
    first = error.errors(include_input=False, include_url=False)[0]
    field = str(first["loc"][0])
    inner = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, str) and part.isidentifier())
    origin = merged.get(field, (None, "configuration"))[1]
    message = first["msg"].removeprefix("Value error, ")
    said = f"{message[:1].lower() + message[1:].rstrip('.')}."
    if origin.endswith(f".{field}"):  # the file's origins name the key
        return ConfigError(f"{origin}{f'.{inner}' if inner else ''}: {said}")
    return ConfigError(f"{origin}: {f'{field}.{inner}' if inner else field}: {said}")


def _overlay(target: Target, arguments: dict[str, Any]) -> Target:
    merged: dict[str, tuple[Any, str]] = {k: (v, "argument") for k, v in arguments.items()}
    own = {k: (getattr(target, k), target.origins.get(k, "default")) for k in FIELDS}
    return _build(target.name, _merge([merged, own]) if arguments else own)
