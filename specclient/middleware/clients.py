"""Where each SDK keeps its HTTP client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specclient.middleware.families import family_of
from specclient.middleware.family import Family


def _itself(sdk: Any) -> tuple[Any, ...]:
    return (sdk,)


def _stainless(sdk: Any) -> tuple[Any, ...]:
    """openai, groq, cerebras, fireworks, together: one client, sync or async, shared by `with_options`."""
    return (getattr(sdk, "_client", None),)


def _speakeasy(sdk: Any) -> tuple[Any, ...]:
    """mistralai: a sync and an async client in one SDK object."""
    configuration = getattr(sdk, "sdk_configuration", None)
    return (getattr(configuration, "client", None), getattr(configuration, "async_client", None))


PLACES: tuple[Callable[[Any], tuple[Any, ...]], ...] = (_itself, _stainless, _speakeasy)


def http_clients(sdk: Any) -> list[tuple[Family, Any]]:
    """Every HTTP client inside an SDK object. Raises TypeError where there is none that we know."""
    for place in PLACES:
        found = [(family, client) for client in place(sdk) if (family := family_of(client)) is not None]
        if found:
            return found
    kind = f"{type(sdk).__module__}.{type(sdk).__qualname__}"
    raise TypeError(
        f"specclient.wrap takes a client object of the openai, groq, mistralai, cerebras, fireworks or "
        f"together SDK, or an httpx or httpx2 client, not {kind}."
    )
