"""`with_raw_response`: the answer with its status and headers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar

from specclient.core.errors import request_id
from specclient.core.flow import Flow
from specclient.core.http import safe_request

R = TypeVar("R")


def http_request(flow: Flow) -> Any:
    """The request as an httpx one, without its body; what could be a secret is masked."""
    import httpx

    send = getattr(flow.exchange, "send", None)
    if send is not None and send.url.startswith("http"):
        return safe_request(send)
    return httpx.Request("POST", "http://local/")  # the engine: nothing went over a network


def http_response(flow: Flow, content: bytes) -> Any:
    """What came, as an httpx response whose request shows no key."""
    import httpx

    framing = ("content-encoding", "content-length", "transfer-encoding")
    headers = {name: value for name, value in flow.headers.items() if name not in framing}
    return httpx.Response(flow.status or 0, headers=headers, content=content, request=http_request(flow))


class RawResponse(Generic[R]):
    """Headers, status and request id of an answer; `parse()` gives the answer itself."""

    def __init__(self, flow: Flow, parsed: R) -> None:
        self._flow = flow
        self._parsed = parsed

    @classmethod
    def of(cls, other: RawResponse[R]) -> Self:
        """The same response as one of this class."""
        return cls(other._flow, other._parsed)

    @property
    def http_response(self) -> Any:
        return http_response(self._flow, self.content)

    @property
    def headers(self) -> Any:
        """As `httpx.Headers`: names in any case."""
        return self.http_response.headers

    @property
    def status_code(self) -> int:
        return self._flow.status or 0

    @property
    def http_request(self) -> Any:
        return http_request(self._flow)

    @property
    def url(self) -> Any:
        return self.http_request.url

    @property
    def method(self) -> str:
        return "POST"

    @property
    def http_version(self) -> str:
        return "HTTP/1.1"

    @property
    def elapsed(self) -> timedelta:
        """From sending the last try's request to the end of its answer; of a stream, to its headers."""
        attempt = self._flow.ledger.timeline.attempt
        end = attempt.ended or attempt.headers or attempt.started
        return timedelta(microseconds=(end - attempt.started) / 1000)

    @property
    def request_id(self) -> str | None:
        return request_id(self._flow.headers)

    @property
    def retries_taken(self) -> int:
        return max(len(self._flow.ledger.attempts) - 1, 0)

    @property
    def content(self) -> bytes:
        """The body as JSON; empty for a stream."""
        return b"" if self._flow.result is None else json.dumps(self._flow.result).encode()

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return self._flow.result

    def parse(self) -> R:
        """The answer, or the stream."""
        return self._parsed

    def __repr__(self) -> str:
        return f"<RawResponse [{self.status_code}]>"
