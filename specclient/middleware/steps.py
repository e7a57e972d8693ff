"""What a wrapped request may ask of the network. The same steps run under a sync and an async client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from specclient.core.pool_calls import POOL_CALLS


def raw_headers(headers: Any) -> dict[bytes, bytes]:
    """Headers of either family by lower-case name: each look-up in theirs walks over all of them."""
    return {name.lower(): value for name, value in headers.raw}


def headers_reader(module: ModuleType) -> Callable[[Any], dict[bytes, bytes]]:
    """How the headers of a family are read by lower-case name: off the list that it keeps, where that is as
    in the versions known today, which takes a third of the time."""
    try:
        as_known = _kept_headers(module.Headers([("A", "b")])) == {b"a": b"b"}
    except (AttributeError, TypeError, ValueError):
        as_known = False
    return _kept_headers if as_known else raw_headers


def _kept_headers(headers: Any) -> dict[bytes, bytes]:
    return {name: value for _, name, value in headers._list}


def as_text(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """The same as text. Of most answers only two or three headers are looked at."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}


def is_raw(response: Any, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a response's stream gives the body as it is, and can be exchanged for another.

    A body that is encoded, or that was at hand from the start (of a mock, a cache), is not like that.
    """
    return b"content-encoding" not in headers and not response.is_closed


@dataclass(slots=True)
class Send:
    """Send a request; the result is its response, whatever its status."""

    request: Any
    scope: AbstractContextManager[None] | None = None

    def run(self, transport: Any) -> Any:
        if self.scope is None:
            with POOL_CALLS:
                return transport.handle_request(self.request)
        with self.scope, POOL_CALLS:
            return transport.handle_request(self.request)

    async def arun(self, transport: Any) -> Any:
        if self.scope is None:
            return await transport.handle_async_request(self.request)
        with self.scope:
            return await transport.handle_async_request(self.request)


@dataclass(slots=True)
class Read:
    """Read the whole body of a response; the result is the body with its content encoding undone.

    A raw body is read past the response object, which then can take another one.
    """

    response: Any
    raw: bool

    def run(self, _transport: Any) -> bytes:
        response = self.response
        with POOL_CALLS:
            try:
                if not self.raw:
                    return response.read()  # type: ignore[no-any-return]  # a Response of either family
                return b"".join(response.stream)
            finally:
                response.stream.close()

    async def arun(self, _transport: Any) -> bytes:
        response = self.response
        try:
            if not self.raw:
                return await response.aread()  # type: ignore[no-any-return]
            return b"".join([block async for block in response.stream])
        finally:
            await response.stream.aclose()


Step = Send | Read
