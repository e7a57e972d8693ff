"""Environment variables of ours that nobody reads: a misspelt name would otherwise do nothing, silently."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from specclient.config.target import FIELDS

PREFIX = "SPECCLIENT_"
TARGETS = f"{PREFIX}TARGETS__"
_OWN = ("CACHE", "CONFIG", "LOG", "MODEL_SOURCES", "PROFILE", "TARGET")
_NAMES = (*_OWN, *(field.upper() for field in FIELDS))
_NEAR = 0.75
"""How alike two names are (`difflib`, from 0 to 1) for the one to be a slip of the other."""


def variable_of(target: str) -> str:
    """What the variables of a target begin with."""
    return f"{TARGETS}{_as_variable(target)}__"


def _as_variable(target: str) -> str:
    return target.upper().replace("-", "_")


def described(env: Mapping[str, str], targets: Iterable[str]) -> list[str]:
    """The further targets that variables describe: those with a provider or an address there, and `local`
    with any."""
    known = {_as_variable(target) for target in targets}
    found = (name.removeprefix(TARGETS).rpartition("__") for name in env if name.startswith(TARGETS))
    enough = {target for target, _, field in found if target == "LOCAL" or field in ("PROVIDER", "BASE_URL")}
    return sorted(target.lower() for target in enough - known)


def unread(
    env: Mapping[str, str],
    targets: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Mapping[str, Any]],
) -> dict[str, str | None]:
    """`SPECCLIENT_…` variables that nothing reads -> the name that was probably meant, or None.

    A name that the configuration itself gives to a key or a token is the user's own.
    """
    own = [table.get("api_key_env") for table in targets.values()]
    own += [table.get("token_env") for table in settings.values()]
    named = {_as_variable(target) for target in (*targets, "local", *described(env, targets))}
    found: dict[str, str | None] = {}
    for name in env:
        if not name.startswith(PREFIX) or name in own:
            continue
        if name.startswith(TARGETS):
            if (meant := _in_target(name, named)) != name:
                found[name] = meant
        elif name.removeprefix(PREFIX) not in _NAMES:
            near = _nearest(name.removeprefix(PREFIX), _NAMES)
            found[name] = near and PREFIX + near
    return found


def _in_target(name: str, named: Iterable[str]) -> str | None:
    """The variable of a target that a name is, or was probably meant to be."""
    target, _, field = name.removeprefix(TARGETS).rpartition("__")
    fields = [name.upper() for name in FIELDS]
    meant_target = target if target in named else _nearest(target, named)
    meant_field = field if field in fields else _nearest(field, fields)
    return f"{TARGETS}{meant_target}__{meant_field}" if meant_target and meant_field else None


def _nearest(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=_NEAR)), None)


def sentence(name: str, meant: str | None) -> str:
    """What to tell of a variable that is not read."""
    hint = (
        f"did you mean {meant}?"
        if meant
        else f"any field of a target is, as {PREFIX}MODEL or as {TARGETS}NAME__MODEL."
    )
    return f"The environment variable {name} is not read by specclient; {hint}"
