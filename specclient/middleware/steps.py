"""What a wrapped request may ask of the network. The same steps run under a sync and an async client."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the result is its response, whatever its status."""

    request: Any
    scope: AbstractContextManager[None]

    def run(self, transport: Any) -> Any:
        with self.scope:
            return transport.handle_request(self.request)

    async def arun(self, transport: Any) -> Any:
        with self.scope:
            return await transport.handle_async_request(self.request)


@dataclass(frozen=True, slots=True)
class Read:
    """Read the whole body of a response; the result is the body with its content encoding undone."""

    response: Any

    def run(self, _transport: Any) -> bytes:
        try:
            return self.response.read()  # type: ignore[no-any-return]  # a Response of either family
        finally:
            self.response.close()

    async def arun(self, _transport: Any) -> bytes:
        try:
            return await self.response.aread()  # type: ignore[no-any-return]
        finally:
            await self.response.aclose()


Step = Send | Read
