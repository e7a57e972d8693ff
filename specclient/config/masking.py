"""What of a configuration may be shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

MASK = "**********"
_SECRET_NAME = re.compile("key|token|secret|sig|auth|pass|code", re.IGNORECASE)
"""Names of query parameters whose values are not shown."""


def masked(name: str, value: Any) -> str:
    """A field's value as text that may be shown."""
    if value is None or value in ((), {}, ""):
        return ""
    if isinstance(value, SecretStr):
        return MASK
    if name == "headers":
        return ", ".join(f"{key}: {MASK}" for key in value)
    if name == "api_key_command":
        return f"{program(value)} …"
    if name in ("proxy", "base_url"):
        return without_password(value)
    if name == "timeout":
        return ", ".join(f"{key} {limit:g} s" for key, limit in value.model_dump(exclude_none=True).items())
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={MASK if _SECRET_NAME.search(key) else item}" for key, item in value.items())
    return str(value)


def on_one_line(name: str) -> str:
    """A name as it is, or in quotes where it would not be seen or would break a sentence."""
    return name if name.strip() and name.isprintable() else repr(name)


def program(command: str | Sequence[str]) -> str:
    """The first word of a command. Those after it may be secrets."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # a quote that is never closed
        words = str(command).split()
    return next(iter(words), "")


def without_password(url: str) -> str:
    """An address without the user and password that it may hold."""
    try:
        parts = urlsplit(url)
    except ValueError:
        _, at, rest = url.rpartition("@")
        return f"{MASK}@{rest}" if at else url
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}"))
