"""Finding endpoints by name. A module dropped into `endpoints/` is all that a new one needs."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from fnmatch import fnmatchcase
from functools import lru_cache
from threading import Lock
from urllib.parse import urlsplit

from specclient_providers import endpoints
from specclient_providers.endpoint import Endpoint
from specclient_providers.errors import UnknownProvider

_registered: dict[str, Endpoint] = {}
_lock = Lock()


def register(endpoint: Endpoint) -> None:
    """Add an endpoint at run time, or replace one. A name is lower case with underscores."""
    name = endpoint.name
    if not name.isidentifier() or name != name.lower():
        raise ValueError(f"An endpoint's name is lower case with underscores, not {name!r}.")
    with _lock:
        _registered[name] = endpoint
    provider_at.cache_clear()


def unregister(name: str) -> None:
    """Take back a `register`."""
    with _lock:
        _registered.pop(name, None)
    provider_at.cache_clear()


def provider_names() -> tuple[str, ...]:
    """Every known name, sorted."""
    found = {module.name for module in pkgutil.iter_modules(endpoints.__path__)}
    return tuple(sorted(found | set(_registered)))


def get(name: str) -> Endpoint:
    """The endpoint called `name`. Raises UnknownProvider naming those with a similar name."""
    with _lock:
        if name in _registered:
            return _registered[name]
    if name.isidentifier() and name == name.lower():
        place = f"{endpoints.__name__}.{name}"
        try:
            endpoint: Endpoint = importlib.import_module(place).ENDPOINT
        except ModuleNotFoundError as error:
            if error.name != place:  # a module of ours that lacks what it imports
                raise
        else:
            return endpoint
    raise UnknownProvider(_not_known(name))


def _not_known(name: str) -> str:
    names = provider_names()
    asked = name.lower().replace("-", "_")
    close = difflib.get_close_matches(asked, names, n=3, cutoff=0.5)
    # Beside a name that is nearly the same, those that only share letters with it are noise.
    close = difflib.get_close_matches(asked, close, n=3, cutoff=0.8) or close
    close += [known for known in names if known in name.lower() and known not in close]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known are {', '.join(names)}."
    return (
        f"No provider is called {name!r}. {hint} For any other OpenAI-compatible address use provider "
        f"'openai_compatible' with a base_url."
    )


@lru_cache(maxsize=512)
def provider_at(host: str) -> str:
    """The hosted endpoint that documents this host; `openai_compatible` for any other."""
    host = host.lower()
    hosted = [endpoint for endpoint in map(get, provider_names()) if not endpoint.self_hosted]
    for endpoint in hosted:
        if host and host == urlsplit(endpoint.base_url or "").hostname:
            return endpoint.name
    for endpoint in hosted:
        if any(fnmatchcase(host, pattern) for pattern in endpoint.hosts):
            return endpoint.name
    return "openai_compatible"
