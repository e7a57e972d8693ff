"""The serving side of a trace: one SERVER span a request, a child of the caller's span.

Names follow the HTTP conventions. Where the application already has a server span open (its own ASGI
instrumentation), none is added.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from specclient.tracing.finaliser import CallOutcome, end_span
from specclient.tracing.options import DEFAULT_OPTIONS, TracingOptions
from specclient.tracing.propagation import extract

log = logging.getLogger(__name__)


class ServerSpan:
    """A request being served. `context` is the parent for `start_call`; `finish` counts once."""

    __slots__ = ("_clock", "_ended", "_span", "_wall", "context")

    def __init__(self, span: Span, context: Context | None, wall: int) -> None:
        self._span = span
        self._wall, self._clock = wall, time.perf_counter_ns()
        self._ended = False
        self.context = context

    def finish(self, status: int | None = None, outcome: CallOutcome = "completed") -> None:
        """The response is out (or will never be); `status` is the HTTP status that was sent."""
        if self._ended:
            return
        self._ended = True
        if self._span.is_recording():
            if status is not None:
                self._span.set_attribute("http.response.status_code", status)
            failed = status is not None and status >= 500
            if failed or outcome in ("error", "cancelled", "abandoned"):
                self._span.set_attribute("error.type", str(status) if failed else "_OTHER")
                self._span.set_status(Status(StatusCode.ERROR))
        end_span(self._span, self._wall + time.perf_counter_ns() - self._clock)


def start_server(
    headers: Mapping[str, str],
    *,
    method: str,
    route: str,
    options: TracingOptions = DEFAULT_OPTIONS,
    address: str | None = None,
    port: int | None = None,
) -> ServerSpan:
    """Begin serving a request; its span joins the caller's trace by the `traceparent` in `headers`."""
    wall = time.time_ns()
    nothing = ServerSpan(trace.INVALID_SPAN, None, wall)
    if options.telemetry != "on":
        return nothing
    try:
        if trace.get_current_span().get_span_context().is_valid:
            return nothing
        attributes: dict[str, str | int] = {"http.request.method": method, "http.route": route}
        if address:
            attributes["server.address"] = address
            if port is not None:
                attributes["server.port"] = port
        span = options.open(f"{method} {route}", extract(headers), SpanKind.SERVER, attributes, wall)
        return ServerSpan(span, trace.set_span_in_context(span), wall)
    except Exception:
        log.debug("served request not traced", exc_info=True)
        return nothing
