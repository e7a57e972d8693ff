"""Every target as a call gets it: what `specclient config show` shows."""

from __future__ import annotations

import os
from dataclasses import dataclass

from specclient.config.files import Config
from specclient.config.layers import resolve_target
from specclient.config.target import Target
from specclient.config.variables import described

_DESCRIBING = ("SPECCLIENT_PROVIDER", "SPECCLIENT_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
"""With one of these set, a call that names no target has one although the configuration has no default."""


@dataclass(frozen=True, slots=True)
class UsedTargets:
    """`targets` by name; `default` names the one that a call gets which names none (None: there is none).

    `SPECCLIENT_MODEL` and the like are in the default one alone: a target that a call names has them not.
    """

    targets: dict[str, Target]
    default: str | None
    default_origin: str | None


def used_targets(config: Config) -> UsedTargets:
    """All targets of the file and of the environment. Raises ConfigError for a value that cannot be used."""
    env = config.env or os.environ
    names = sorted({*config.targets, *described(env, config.targets)})
    found = {name: resolve_target(name, config=config) for name in names if name != config.default}
    default, origin = config.default, config.origins.get("default")
    if default is not None:
        # A default that is nowhere is told of by the checks; the other targets can be shown all the same.
        if default in (*names, "local"):
            found[default] = resolve_target(config=config)
    elif origin := next((name for name in _DESCRIBING if env.get(name)), None):
        target = resolve_target(config=config)
        default = f"{target.name} of the environment" if target.name in found else target.name
        found[default] = target
    return UsedTargets(dict(sorted(found.items())), default, origin)
