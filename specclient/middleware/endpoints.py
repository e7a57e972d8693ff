"""Which endpoint a request goes to, read off its address."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlsplit

LOCAL = "local"
"""Scheme of an address that is answered in this process, and the name of its provider."""

_OTHER_COMPLETIONS = ("/fim/completions", "/agents/completions")


@dataclass(frozen=True, slots=True)
class Address:
    """A request's address taken apart. `model` is the deployment in the path, where there is one."""

    is_local: bool
    api: str
    base_url: str
    host: str
    model: str | None
    api_version: str | None


@lru_cache(maxsize=512)
def address_of(url: str) -> Address | None:
    """The address of a chat or text completion; None for every other path."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if not path.endswith("/completions") or path.endswith(_OTHER_COMPLETIONS):
        return None
    api = "chat" if path.endswith("/chat/completions") else "completions"
    root = path.removesuffix("/completions").removesuffix("/chat")
    before, deployment, model = root.partition("/deployments/")
    return Address(
        is_local=parts.scheme == LOCAL,
        api=api,
        base_url=f"{parts.scheme}://{parts.netloc}{before if deployment else root}",
        host=parts.hostname or "",
        model=unquote(model) or None,
        api_version=dict(parse_qsl(parts.query)).get("api-version"),
    )
