"""`with_raw_response`: the answer with its status and headers."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from specclient.core.errors import MASK, request_id
from specclient.core.flow import Flow

R = TypeVar("R")


def http_response(flow: Flow, content: bytes) -> Any:
    """What came, as an httpx response whose request shows no key."""
    import httpx

    framing = ("content-encoding", "content-length", "transfer-encoding")
    headers = {name: value for name, value in flow.headers.items() if name not in framing}
    host, _ = flow.current.address
    request = httpx.Request("POST", f"https://{host or 'local'}/", headers={"authorization": MASK})
    return httpx.Response(flow.status or 0, headers=headers, content=content, request=request)


class RawResponse(Generic[R]):
    """Headers, status and request id of an answer; `parse()` gives the answer itself."""

    def __init__(self, flow: Flow, parsed: R) -> None:
        self._flow = flow
        self._parsed = parsed

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
