"""Where an API key comes from. Its value leaves this room only inside a SecretStr."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import SecretStr

from specclient.config.masking import on_one_line, program
from specclient.config.places import expanded
from specclient.config.sendable import fault_in_header_value
from specclient.config.target import Target
from specclient.errors import ConfigError

_COMMAND_SECONDS = 30.0


def api_key(
    target: Target,
    env: Mapping[str, str],
    *,
    key_env: Sequence[str] = (),
    directory: Path | None = None,
    required: bool = True,
) -> SecretStr | None:
    """The key of a target, or None where it needs none.

    The source that the target names (`api_key`, `api_key_env`, `api_key_file`, `api_key_command`; one of
    them) comes before the variables that its provider documents (`key_env`). Raises ConfigError when a
    named source has no key, or when the provider needs a key and there is none; a server of one's own
    does not (`required` is false). An `api_key` that is blank is none.
    """
    if target.api_key is not None and target.api_key.get_secret_value().strip():
        return target.api_key
    where = f"target {target.name!r}"
    if target.api_key_env:
        if value := env.get(target.api_key_env, "").strip():
            return _key(value, f"The environment variable {target.api_key_env} of {where}")
        named = on_one_line(target.api_key_env)
        raise ConfigError(f"No API key for {where}: set the environment variable {named}.")
    if target.api_key_file:
        return _from_file(target.api_key_file, directory, where)
    if target.api_key_command:
        return _from_command(target.api_key_command, directory, where)
    for name in key_env:
        if value := env.get(name, "").strip():
            return _key(value, f"The environment variable {name} of {where}")
    if key_env and required:
        raise ConfigError(
            f"No API key for {where} (provider {target.provider}): set the environment variable "
            f"{' or '.join(key_env)}, pass api_key=, or name a source in the configuration (api_key_env, "
            f"api_key_file, api_key_command). Provider 'local' needs none."
        )
    return None


def _key(value: str, source: str) -> SecretStr:
    """A key that can be sent. `source` begins the sentence that says why one cannot."""
    if (said := fault_in_header_value(value)) is not None:
        raise ConfigError(f"{source} {said}: it is to hold the key alone.")
    return SecretStr(value)


def _from_file(file: str, directory: Path | None, where: str) -> SecretStr:
    try:
        path = (directory or Path()) / expanded(file)
        value = path.read_text("utf-8").strip()
    except (OSError, ValueError):  # also where it is no text
        raise ConfigError(f"The api_key_file of {where} cannot be read: {file!r}.") from None
    if not value:
        raise ConfigError(f"The api_key_file of {where} is empty: {path}.")
    return _key(value, f"The api_key_file of {where} ({path})")


def _from_command(command: str | tuple[str, ...], directory: Path | None, where: str) -> SecretStr:
    import subprocess

    label = program(command)
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words:
            raise ConfigError(f"The api_key_command of {where} is empty: name a program.")
        done = subprocess.run(
            words, cwd=directory, capture_output=True, timeout=_COMMAND_SECONDS, check=False, text=True
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:  # also what is no command, or no text
        raise ConfigError(
            f"The api_key_command of {where} ({label}) did not work: {type(error).__name__}."
        ) from None
    value = done.stdout.strip()
    if done.returncode or not value:
        problem = f"ended with exit code {done.returncode}" if done.returncode else "printed nothing"
        raise ConfigError(f"The api_key_command of {where} ({label}) {problem}.")
    return _key(value, f"What the api_key_command of {where} ({label}) printed")
