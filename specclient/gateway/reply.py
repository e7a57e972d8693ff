"""The response to one request: begun once, never silent for long, never buffered."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.types import Send

from specclient.gateway.answers import Problem, event, problem_response

COMMENT = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"

_EVENT_STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would hold the stream back
]


class Reply:
    """Writes one response. `status` is what was sent, None before anything was."""

    def __init__(self, send: Send, *, streamed: bool, keep_alive_seconds: float) -> None:
        self.status: int | None = None
        self._send = send
        self._streamed = streamed
        self._interval = keep_alive_seconds
        self._last = time.monotonic()
        self._begun = asyncio.Lock()

    async def start_stream(self) -> None:
        """The head of an event stream, if it is not out yet."""
        async with self._begun:  # by the answer or by a comment, whichever comes first
            if self.status is not None:
                return
            headers = [*_EVENT_STREAM, (b"x-request-id", f"req-{uuid.uuid4().hex}".encode())]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            self.status = 200

    async def write(self, block: bytes) -> None:
        """One piece of the stream. Waits while the client reads more slowly than the target writes."""
        self._last = time.monotonic()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})

    async def write_event(self, value: Mapping[str, Any]) -> None:
        await self.write(event(value))

    async def end_stream(self, last: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def whole(self, response: Any) -> None:
        """A response that is ready (of starlette)."""
        self.status = response.status_code
        await self._send(
            {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        )
        await self._send({"type": "http.response.body", "body": response.body, "more_body": False})

    async def fail(self, problem: Problem) -> None:
        """Tell of an error: by the status where none was sent, else inside the stream."""
        async with self._begun:
            if self.status is None:
                await self.whole(problem_response(problem))
                return
        await self.end_stream(event(problem.body))

    async def keep_alive(self) -> None:
        """Runs beside the answer: a comment whenever the stream has been silent, for as long as it lasts.

        The first one begins the response. From then on an error of the target can only be told inside the
        stream, which is the lesser evil: a proxy that gives up tells nothing.
        """
        while self._streamed:
            silent = time.monotonic() - self._last
            if silent < self._interval:
                await asyncio.sleep(self._interval - silent)
                continue
            await self.start_stream()
            await self.write(COMMENT)
