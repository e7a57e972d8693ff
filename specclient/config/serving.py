"""What the server is allowed to do, and for whom."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from specclient.config import Config
from specclient.config.masking import on_one_line
from specclient.errors import ConfigError

DEFAULT_PORT = 8377


class ServeSettings(BaseModel):
    """The table `[serve]` of the configuration, overlaid by arguments.

    `token` (or the variable that `token_env` names) is asked of every request as `Authorization: Bearer`;
    an address that is not loopback needs one. `allowed_hosts` are names that clients may call the server
    by, `allowed_origins` the web pages that may call it at all (none by default). `targets` limits what
    is served (default: every configured target), `models` says which models clients may have besides a
    target's own, as patterns of "TARGET/MODEL" ("prod/gpt-*"; default: what a target's server has, and of the
    embedded engine what it knows by name). Limits: `max_body_bytes` of one request, `max_requests`
    in flight, `body_seconds` to send a request; `keep_alive_seconds` of silence until a stream gets a
    comment, so that proxies do not take a long prefill for a dead connection; `shutdown_seconds` for
    answers under way when the server is told to stop.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = DEFAULT_PORT
    token: SecretStr | None = None
    token_env: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    targets: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    models: tuple[Annotated[str, Field(pattern="^[^/]+/.+")], ...] | None = None
    max_body_bytes: Annotated[int, Field(gt=0)] = 32 * 1024 * 1024
    max_requests: Annotated[int, Field(gt=0)] = 64
    body_seconds: Annotated[float, Field(gt=0)] = 30.0
    keep_alive_seconds: Annotated[float, Field(gt=0)] = 15.0
    shutdown_seconds: Annotated[float, Field(ge=0)] = 30.0

    @classmethod
    def of(cls, config: Config, **arguments: Any) -> ServeSettings:
        """Arguments over the file's table. Raises ConfigError in one sentence."""
        table: Mapping[str, Any] = config.settings.get("serve", {})
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            settings = cls.model_validate({**table, **given})
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            origin = "argument" if first["loc"][:1] and first["loc"][0] in given else str(config.path)
            raise ConfigError(f"{origin}: serve.{where}: {_sentence(first['msg'])}") from None
        return settings.with_token(config.env or os.environ)

    def with_token(self, env: Mapping[str, str]) -> ServeSettings:
        """The token looked up, and the address checked against it."""
        token = self.token
        if token is None and self.token_env is not None:
            found = env.get(self.token_env)
            if not found:
                raise ConfigError(f"serve.token_env names {on_one_line(self.token_env)}, which is not set.")
            token = SecretStr(found)
        if token is None and not is_loopback(self.host):
            raise ConfigError(
                f"Serving on {on_one_line(self.host)} would give everyone who reaches this machine your "
                f"keys: set serve.token_env (or --token-env), or serve on 127.0.0.1."
            )
        return self.model_copy(update={"token": token})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _sentence(message: str) -> str:
    said = message.removeprefix("Value error, ")
    return f"{said[:1].lower()}{said[1:].rstrip('.')}."
