"""Targets: where a call goes, with which model, key, limits and fallbacks.

Four layers, the first that has a value wins: arguments, environment, file, defaults. Each value of a
`Target` knows its layer (`target.origins`).

File: `specclient.toml`, or `[tool.specclient]` of `pyproject.toml`, the nearest one upward from the
working directory, or the one that `SPECCLIENT_CONFIG` or `path=` names:

    default = "prod"                      # the target used when none is named
    [targets.prod]
    provider = "fireworks"
    model = "accounts/…"
    api_key_env = "FIREWORKS_API_KEY"     # or api_key_file, api_key_command
    fallback = ["local"]
    [targets.local]
    provider = "local"
    [profiles.ci]                         # laid over the rest when chosen (SPECCLIENT_PROFILE, profile=)
    default = "local"

Environment: `SPECCLIENT_TARGET`, `SPECCLIENT_PROFILE`, `SPECCLIENT_TARGETS__PROD__MODEL` (any field of a
named target), and `SPECCLIENT_PROVIDER`, `SPECCLIENT_MODEL`, `SPECCLIENT_BASE_URL`, … (any field of the
default target; they do not touch a target that is named by an argument).
"""

from specclient.config.files import Config, ConfigWarning, load_config
from specclient.config.keys import api_key
from specclient.config.layers import resolve_target
from specclient.config.target import FIELDS, Target, Timeout
from specclient.config.used import UsedTargets, used_targets

__all__ = [
    "FIELDS",
    "Config",
    "ConfigWarning",
    "Target",
    "Timeout",
    "UsedTargets",
    "api_key",
    "load_config",
    "resolve_target",
    "used_targets",
]
