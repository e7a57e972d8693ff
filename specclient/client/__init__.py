"""The OpenAI-shaped client, sync and async, over every target."""

from specclient.client.client import AsyncClient, AsyncOpenAI, Client, OpenAI
from specclient.client.params import NOT_GIVEN, NotGiven, Omit, omit
from specclient.client.stream import AsyncStream, Stream

__all__ = [
    "NOT_GIVEN",
    "AsyncClient",
    "AsyncOpenAI",
    "AsyncStream",
    "Client",
    "NotGiven",
    "Omit",
    "OpenAI",
    "Stream",
    "omit",
]
