"""What of a configuration may be shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

MASK = "**********"
_SECRET_NAME = re.compile("key|token|secret|sig|auth|pass|code", re.IGNORECASE)
"""Names of query parameters whose values are not shown."""


def masked(name: str, value: Any) -> str:
    """A field's value as text that may be shown."""
    if value is None or value in ((), {}):
        return ""
    if isinstance(value, SecretStr):
        return MASK
    if name == "headers":
        return ", ".join(f"{key}: {MASK}" for key in value)
    if name == "api_key_command":
        return (shlex.split(value)[0] if isinstance(value, str) else value[0]) + " …"
    if name in ("proxy", "base_url"):
        return without_password(value)
    if name == "timeout":
        return ", ".join(f"{key} {limit:g} s" for key, limit in value.model_dump(exclude_none=True).items())
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={MASK if _SECRET_NAME.search(key) else item}" for key, item in value.items())
    return str(value)


def without_password(url: str) -> str:
    """An address without the user and password that it may hold."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}"))
