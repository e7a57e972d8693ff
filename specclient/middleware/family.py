"""What differs between the HTTP families, as one value that the middleware hands along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Family:
    """Our classes in the dress of one HTTP library, joined to its base classes (see `families`).

    `headers` reads a message's headers by lower-case name. `body` watches a stream that passes, `bytes_body`
    is one that is at hand, `local_body` is the engine's. `at_hand` is a response that is parsed already.
    """

    module: ModuleType
    headers: Callable[[Any], dict[bytes, bytes]]
    transport: type[Any]
    async_transport: type[Any]
    body: type[Any]
    async_body: type[Any]
    bytes_body: type[Any]
    async_bytes_body: type[Any]
    local_body: type[Any]
    async_local_body: type[Any]
    at_hand: type[Any]
