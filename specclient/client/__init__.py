"""The OpenAI-shaped client, sync and async, over every target."""

from specclient.client.base import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT
from specclient.client.client import AsyncClient, AsyncOpenAI, Client, OpenAI
from specclient.client.params import NOT_GIVEN, NotGiven, Omit, not_given, omit
from specclient.client.stream import AsyncStream, Stream

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
