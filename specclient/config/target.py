"""What a target is made of."""

from __future__ import annotations

import math
import re
import shlex
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from specclient.config.masking import masked
from specclient.config.places import is_there
from specclient.config.sendable import fault_in_address, fault_in_header_value
from specclient.economics import EconomicsOptions
from specclient.errors import ConfigError

Limit = Annotated[float, Field(gt=0, le=1e9)] | None


class Timeout(BaseModel):
    """The limits of a call, in seconds; None switches one off.

    `connect` to an open connection, TLS included; `write` one piece of the request; `pool` a free
    connection; `first_byte` from the request sent to the response's headers; `first_content` from the same
    to the first content; `content_idle` between two pieces of content (keep-alive comments and empty
    frames are not content); `total` the whole call with its retries and fallbacks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect: Limit = 5.0
    write: Limit = 600.0
    pool: Limit = 600.0
    first_byte: Limit = 600.0
    first_content: Limit = 600.0
    content_idle: Limit = 120.0
    total: Limit = None

    @classmethod
    def of(cls, value: Any) -> Timeout:
        """A number (every limit but `total`), None (no limits), a table, a Timeout or an httpx Timeout."""
        if isinstance(value, Timeout):
            return value
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            connect = value if value is None else min(float(value), 5.0)
            return cls._checked({"connect": connect, "write": value, "pool": value, **_reading(value)})
        if isinstance(value, Mapping):
            return cls._checked(value)
        if not hasattr(value, "read"):
            raise ConfigError(
                f"timeout is a number of seconds, None, a table or a Timeout, not {type(value).__name__}."
            )
        limits = {"connect": value.connect, "write": value.write, "pool": value.pool}
        return cls._checked({**limits, **_reading(value.read)})

    @classmethod
    def _checked(cls, limits: Mapping[str, Any]) -> Timeout:
        try:
            return cls(**limits)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ConfigError(f"timeout.{where}: {first['msg'].lower()}.") from None


def _reading(seconds: float | None) -> dict[str, float | None]:
    return {"first_byte": seconds, "first_content": seconds, "content_idle": seconds}


ON = ("1", "true", "yes", "on")
OFF = ("0", "false", "no", "off")
_PROXIES = ("http", "https", "socks5", "socks5h")
_PRICED = ("input", "output", "rejected")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.1
_DEVICE = re.compile(r"auto|cpu|(cuda|mps|xpu)(:\d+)?")


class TargetFields(BaseModel):
    """The fields that a file, the environment or an argument may set, and what they may hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    api_key_command: str | tuple[str, ...] | None = None
    api_version: str | None = None
    organization: str | None = None
    project: str | None = None
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    fallback: tuple[str, ...] = ()
    on_unsupported: Literal["withhold", "error", "local"] = "withhold"
    prefer_prediction: bool = False
    detect: bool = False
    put_in_prompt: bool = False
    use_corpus: bool = False
    timeout: Timeout = Timeout()
    max_retries: Annotated[int, Field(ge=0)] = 2
    retry_after_content: bool = False
    max_response_bytes: Annotated[int, Field(gt=0)] = 256 * 1024 * 1024
    propagate: Literal["auto", "always", "never"] = "auto"
    proxy: str | None = None
    verify: bool | str | ssl.SSLContext = True
    client_cert: str | None = None
    overrides: dict[str, Any] = {}
    dtype: Literal["auto", "bfloat16", "float32", "int8"] = "auto"
    device: str = "auto"
    draft_model: str | None = None
    max_context: Annotated[int, Field(gt=0)] | None = None
    prices: dict[str, float] = {}
    tags: dict[str, str] = {}
    economics: EconomicsOptions = EconomicsOptions()
    infer_prediction: bool = False

    @field_validator("timeout", mode="before")
    @classmethod
    def _timeout(cls, value: Any) -> Timeout:
        try:
            return Timeout.of(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("provider", "model", "base_url", "api_key_env", "api_key_file")
    @classmethod
    def _not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("is empty; leave it out instead")
        return value

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, value: str | None) -> str | None:
        if value is not None and (said := fault_in_address(value)) is not None:
            raise ValueError(said)
        return value

    @field_validator("api_key")
    @classmethod
    def _api_key(cls, value: SecretStr | None) -> SecretStr | None:
        text = "" if value is None else value.get_secret_value()
        if text.strip() and (said := fault_in_header_value(text)) is not None:
            raise ValueError(said)
        return value

    @field_validator("api_key_command")
    @classmethod
    def _command(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError:
            raise ValueError("has a quote that is never closed") from None
        if words is not None and not (words and words[0].strip()):
            raise ValueError("is empty; leave it out instead")
        if any("\0" in word for word in words or ()):
            raise ValueError("holds a NUL character")
        return value

    @field_validator("organization", "project")
    @classmethod
    def _sendable(cls, value: str | None) -> str | None:
        if value is not None and (said := fault_in_header_value(value)) is not None:
            raise ValueError(said)
        return value

    @field_validator("proxy")
    @classmethod
    def _proxy(cls, value: str | None) -> str | None:
        if not value:
            return value
        if "://" in value and value.partition("://")[0].lower() not in _PROXIES:
            raise ValueError(f"a proxy's address begins with {', '.join(f'{kind}://' for kind in _PROXIES)}")
        if not _is_address(value) or not value.isascii():
            raise ValueError("a proxy's address is a host and a port, such as http://proxy:3128")
        return value

    @field_validator("verify")
    @classmethod
    def _verify(cls, value: bool | str | ssl.SSLContext) -> bool | str | ssl.SSLContext:
        if isinstance(value, str):
            if value.lower() in (*ON, *OFF):
                return value.lower() in ON
            if not is_there(value):
                raise ValueError(f"there is no {value!r}: true, false, or a file or folder of certificates")
        return value

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of a header")
            if (said := fault_in_header_value(text)) is not None:
                raise ValueError(f"the value of {name} {said}")
        return value

    @field_validator("prices")
    @classmethod
    def _prices(cls, value: dict[str, float]) -> dict[str, float]:
        for name, price in value.items():
            if name not in _PRICED:
                raise ValueError(f"there is no price for {name!r}; known are {', '.join(_PRICED)}")
            if price < 0 or not math.isfinite(price):
                raise ValueError(f"{name}: a price per million tokens is 0 or more")
        return value

    @field_validator("device")
    @classmethod
    def _device(cls, value: str) -> str:
        if not _DEVICE.fullmatch(value):
            raise ValueError("a device is auto, cpu, cuda, cuda:1 and the like")
        return value

    @field_validator("fallback", mode="before")
    @classmethod
    def _fallback(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


def _is_address(url: str) -> bool:
    """Whether an address with or without its scheme has a host, and a port that there can be."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        return bool(parts.hostname) and not re.search(r"\s", url) and parts.port != 0
    except ValueError:
        return False


FIELDS: tuple[str, ...] = tuple(TargetFields.model_fields)
"""Names of the fields of a target, in the order in which `specclient config show` prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A resolved target. `origins` maps a field to the layer that its value came from.

    `retry_after_content` allows a stream that broke after content to be asked again; the new text has
    to begin with what was already given, else the call fails. `prices` are per million tokens
    (`input`, `output`, `rejected`). `tags["workload"]` names the workload within which `economics` weighs
    whether predictions are worth it. `infer_prediction` lets `specclient serve` take the known text, of
    80 characters or more, from the prompt where a client cannot send one. `dtype`, `device`, `draft_model`
    and `max_context` are for provider `local`.

    For servers that draft by themselves: `detect` asks one once, by a few public pages, which it is and
    how it drafts; `put_in_prompt` allows adding the known text to the prompt of one that drafts from it;
    `use_corpus` allows loading it into a draft corpus, which all users of that server share.
    """

    name: str
    provider: str
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    api_key_command: str | tuple[str, ...] | None = None
    api_version: str | None = None
    organization: str | None = None
    project: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    fallback: tuple[str, ...] = ()
    on_unsupported: Literal["withhold", "error", "local"] = "withhold"
    prefer_prediction: bool = False
    detect: bool = False
    put_in_prompt: bool = False
    use_corpus: bool = False
    timeout: Timeout = field(default_factory=Timeout)
    max_retries: int = 2
    retry_after_content: bool = False
    max_response_bytes: int = 256 * 1024 * 1024
    propagate: Literal["auto", "always", "never"] = "auto"
    proxy: str | None = field(default=None, repr=False)
    verify: bool | str | ssl.SSLContext = True
    client_cert: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    dtype: Literal["auto", "bfloat16", "float32", "int8"] = "auto"
    device: str = "auto"
    draft_model: str | None = None
    max_context: int | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    economics: EconomicsOptions = field(default_factory=EconomicsOptions)
    infer_prediction: bool = False
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        """Its name and what it is; addresses, queries and commands may hold secrets."""
        return f"Target(name={self.name!r}, provider={self.provider!r}, model={self.model!r})"

    @property
    def engine(self) -> dict[str, Any]:
        """The options that the embedded engine is loaded with."""
        return {
            "dtype": self.dtype,
            "device": self.device,
            "draft_model": self.draft_model,
            "max_context": self.max_context,
        }

    def shown(self) -> dict[str, tuple[str, str]]:
        """Field -> (value as text, origin), secrets masked: what `specclient config show` prints."""
        return {
            name: (masked(name, getattr(self, name)), self.origins.get(name, "default")) for name in FIELDS
        }
