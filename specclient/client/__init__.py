"""The OpenAI-shaped client, sync and async, over every target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specclient.client.base import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT
from specclient.client.client import AsyncClient, AsyncOpenAI, Client, OpenAI
from specclient.client.params import NOT_GIVEN, NotGiven, Omit, not_given, omit

if TYPE_CHECKING:
    from specclient.client.stream import AsyncStream as AsyncStream
    from specclient.client.stream import Stream as Stream

__all__ = [
    "DEFAULT_MAX_RETRIES",
    "DEFAULT_TIMEOUT",
    "NOT_GIVEN",
    "AsyncClient",
    "AsyncOpenAI",
    "AsyncStream",
    "Client",
    "NotGiven",
    "Omit",
    "OpenAI",
    "Stream",
    "not_given",
    "omit",
]


def __getattr__(name: str) -> object:
    """The streams, which bring along all that a call is made of, at their first use."""
    if name not in ("AsyncStream", "Stream"):
        raise AttributeError(f"module 'specclient.client' has no attribute {name!r}")
    from specclient.client import stream

    value: object = getattr(stream, name)
    globals()[name] = value
    return value
