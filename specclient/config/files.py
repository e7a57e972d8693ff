"""The file layer: finding it, reading it, and naming what is wrong with it."""

from __future__ import annotations

import difflib
import os
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specclient.config.masking import on_one_line
from specclient.config.places import expanded
from specclient.config.target import FIELDS
from specclient.config.variables import sentence, unread
from specclient.errors import ConfigError

_SECTIONS = ("tracing", "serve")
_TOP = ("default", "profile", "targets", "profiles", *_SECTIONS)
_NO_TABLES: Mapping[str, Any] = {}


class ConfigWarning(UserWarning):
    """The configuration works, but not in a way that anyone should want."""


class VariableWarning(ConfigWarning):
    """A variable of the environment that looks like one of ours is read by nothing."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the file and the environment say, before a target is picked.

    `targets` holds raw tables; `origins` maps a dotted key (`prod.model`, and `default`) to the layer it came
    from; `settings` are the other sections ("tracing", "serve").
    """

    path: Path | None
    default: str | None
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    profile: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def directory(self) -> Path:
        """What relative paths in the file are relative to; without a file, the working directory."""
        return self.path.parent if self.path else Path()


def load_config(
    path: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    *,
    profile: str | None = None,
    unknown_keys: list[str] | None = None,
) -> Config:
    """Read the configuration. No file is no error; a file that was named and is not there is one.

    Keys that are not known are one ConfigError together. Given a list, they are left out and told there.
    """
    env = os.environ if env is None else env
    found = _named(path, env) or _search()
    tables = _read(found) if found else {}
    said = _unknown_keys(tables, _TOP)
    profiles = _tables_in(tables, "profiles", found)
    chosen = profile or env.get("SPECCLIENT_PROFILE") or _name(tables, "profile", str(found))
    layers: list[tuple[str, Mapping[str, Any]]] = [
        (str(found), {key: value for key, value in tables.items() if key != "profiles"})
    ]
    if chosen:
        if chosen not in profiles:
            raise ConfigError(f"{found or 'configuration'}: {unknown('profile', chosen, profiles)}")
        said += _unknown_keys(profiles[chosen], _TOP, f"profiles.{chosen}.")
        layers.append((f"{found}, profile {chosen}", profiles[chosen]))
    targets: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        said += _merge_targets(layer, origin, targets, origins)
    if unknown_keys is not None:
        unknown_keys += said
    elif said:
        raise ConfigError(f"{found}: {' And '.join(said)}")
    default = env.get("SPECCLIENT_TARGET") or _last(layers, "default")
    if default is not None:
        origins["default"] = _origin_of_default(env, layers)
    elif len(targets) == 1:
        default, origins["default"] = next(iter(targets)), "the only target"
    if found and any("api_key" in table for table in targets.values()):
        _warn_if_tracked(found)
    settings = _sections(layers)
    for name, meant in unread(env, targets, settings).items():
        if meant:  # what is like no name of ours may be the application's own
            warnings.warn(sentence(name, meant), VariableWarning, stacklevel=2)
    return Config(
        path=found,
        default=default,
        targets=targets,
        settings=settings,
        profile=chosen,
        env=env,
        origins=origins,
    )


def _tables_in(layer: Mapping[str, Any], key: str, where: object) -> Mapping[str, Mapping[str, Any]]:
    """The tables of a layer's table of tables."""
    found = layer.get(key, {})
    if not isinstance(found, Mapping):
        raise ConfigError(f"{where}: {key} is a table of tables: write [{key}.NAME].")
    for name, table in found.items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: {key}.{name} is a table: write [{key}.{name}].")
    return found


def _name(table: Mapping[str, Any], key: str, origin: str) -> str | None:
    """The name that stands under `key`, `default` being a target's and `profile` a profile's."""
    if key not in table:
        return None
    name, kind = table[key], "target" if key == "default" else key
    if not isinstance(name, str):
        raise ConfigError(f"{origin}: {key} is the name of a {kind}, not {type(name).__name__}.")
    if not name.strip():
        raise ConfigError(f"{origin}: {key} is empty; leave it out instead.")
    return name


def _last(layers: list[tuple[str, Mapping[str, Any]]], key: str) -> str | None:
    names = [_name(layer, key, origin) for origin, layer in layers if key in layer]
    return names[-1] if names else None


def _sections(layers: list[tuple[str, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """The sections beside the targets, those of a profile laid over those of the file."""
    found: dict[str, Mapping[str, Any]] = {}
    for origin, layer in layers:
        for name in _SECTIONS:
            if name in layer:
                if not isinstance(layer[name], Mapping):
                    raise ConfigError(f"{origin}: {name} is a table: write [{name}].")
                found[name] = {**found.get(name, _NO_TABLES), **layer[name]}
    return found


def _origin_of_default(env: Mapping[str, str], layers: list[tuple[str, Mapping[str, Any]]]) -> str:
    if env.get("SPECCLIENT_TARGET"):
        return "SPECCLIENT_TARGET"
    return next(f"{origin}: default" for origin, layer in reversed(layers) if "default" in layer)


def _merge_targets(
    layer: Mapping[str, Any], origin: str, targets: dict[str, dict[str, Any]], origins: dict[str, str]
) -> list[str]:
    """Lay the targets of a layer over `targets`; what is told of its unknown keys, which are left out."""
    said: list[str] = []
    for name, table in _tables_in(layer, "targets", origin).items():
        said += _unknown_keys(table, FIELDS, f"targets.{name}.")
        known = {key: value for key, value in table.items() if key in FIELDS}
        targets.setdefault(name, {}).update(known)
        origins.update({f"{name}.{key}": f"{origin}: targets.{name}.{key}" for key in known})
    return said


def _named(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path | None:
    given = path or env.get("SPECCLIENT_CONFIG")
    if not given:
        return None
    origin = "the argument" if path else "SPECCLIENT_CONFIG"
    try:
        found = expanded(given).resolve()
        there = found.is_file()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{origin} names no file that can be read: {reason}.") from None
    if not there:
        raise ConfigError(f"No configuration file at {found}, which {origin} names.")
    return found


def _search() -> Path | None:
    """The nearest file upward. Where nobody may look, or the working directory is gone, there is none."""
    try:
        here = Path.cwd()
    except OSError:
        return None
    for folder in (here, *here.parents):
        own = folder / "specclient.toml"
        if _is_file(own):
            return own
        project = folder / "pyproject.toml"
        if _is_file(project) and _has_our_part(project):
            return project
    return None


def _has_our_part(project: Path) -> bool:
    """Whether a pyproject.toml configures us, however spelled. A broken one need not be ours."""
    content = _bytes(project)
    if b"specclient" not in content:
        return False
    try:
        tables = _toml(project, content)
    except ConfigError:
        if b"[tool.specclient" in content:
            raise
        return False
    return bool(_of_project(tables, project))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None


def _read(path: Path) -> Mapping[str, Any]:
    tables = _toml(path, _bytes(path))
    return _of_project(tables, path) if path.name == "pyproject.toml" else tables


def _toml(path: Path, content: bytes) -> Mapping[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}): convert it first.") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: its tables and lists are nested too deeply.") from None
    except ValueError as error:  # besides TOML's own: a number of too many digits
        raise ConfigError(f"{path} is not valid TOML: {str(error).rstrip('.')}.") from None


def _of_project(tables: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Our part of a pyproject.toml."""
    for key, name in (("tool", "tool"), ("specclient", "tool.specclient")):
        tables = tables.get(key, _NO_TABLES)
        if not isinstance(tables, Mapping):
            raise ConfigError(f"{path}: {name} is a table: write [{name}].")
    return tables


def _unknown_keys(table: Mapping[str, Any], names: tuple[str, ...], prefix: str = "") -> list[str]:
    return [unknown("key", key, names, prefix) for key in table if key not in names]


def unknown(kind: str, name: str, known: Any, prefix: str = "", origin: str = "") -> str:
    """The sentence that says that a name is not known, with those that are close; `origin` gave the name."""
    close = difflib.get_close_matches(name, list(known), n=2)
    given = f" ({origin})" if origin else ""
    name = on_one_line(name)
    if close:
        return f"there is no {kind} {prefix}{name}; did you mean {' or '.join(close)}{given}?"
    return f"there is no {kind} {prefix}{name}; known are {', '.join(known) or 'none'}{given}."


class UnknownTarget(ConfigError):
    """No target has the name that `origin` gave."""

    def __init__(self, config: Config, name: str, origin: str) -> None:
        if config.path is None:
            said = f"No configuration file was found, so there is no target {on_one_line(name)} ({origin})."
        else:
            # The embedded engine needs no entry.
            known = dict.fromkeys((*config.targets, "local"))
            place = origin.removeprefix(f"{config.path}: ")
            said = f"{config.path}: {unknown('target', name, known, origin=place)}"
        super().__init__(said)


def _warn_if_tracked(path: Path) -> None:
    import subprocess

    try:
        tracked = subprocess.run(
            ["git", "ls-files", "--error-unmatch", path.name],
            cwd=path.parent,
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if tracked.returncode == 0:
        warnings.warn(
            f"{path} holds an api_key and is tracked by git: move the key to the environment (api_key_env), "
            f"a file (api_key_file) or a command (api_key_command), and replace it at the provider.",
            ConfigWarning,
            stacklevel=3,
        )
