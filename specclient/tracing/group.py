"""The span over a chain of targets.

A span's parent is fixed when it starts, so the one span over a first target and its fallbacks has to be
there before anybody knows whether it will be needed: it is opened for calls that have a chain at all.
"""

from __future__ import annotations

import logging

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from specclient.core.timeline import Timeline
from specclient.tracing.finaliser import end_span
from specclient.tracing.options import DEFAULT_OPTIONS, TracingOptions

log = logging.getLogger(__name__)


class Group:
    """`context` is the parent of each target's call; `fell_back` says why the next one was taken."""

    __slots__ = ("_span", "_timeline", "context")

    def __init__(self, options: TracingOptions, targets: int, timeline: Timeline) -> None:
        self.context: Context | None = None
        self._span: Span = trace.INVALID_SPAN
        self._timeline = timeline
        if targets < 2 or options.telemetry != "on":
            return
        try:
            self._span = options.open("specclient.generate", None, SpanKind.INTERNAL, None, timeline.wall)
            self.context = trace.set_span_in_context(self._span)
        except Exception:
            log.debug("chain of targets not traced", exc_info=True)

    def fell_back(self, target: str, reason: str) -> None:
        """The call goes on at `target`; `reason` is a stable code or an error's class name."""
        if self._span.is_recording():
            self._span.set_attribute("specclient.fallback.reason", reason)
            attributes = {"specclient.target": target, "specclient.fallback.reason": reason}
            self._span.add_event("fallback", attributes, timestamp=self._now())

    def finish(self, error: BaseException | None = None) -> None:
        """End the span over the chain; `error` is what the caller gets, if anything."""
        if error is not None and self._span.is_recording():
            self._span.set_attribute("error.type", type(error).__name__)
            self._span.set_status(Status(StatusCode.ERROR))
        end_span(self._span, self._now())
        self._span = trace.INVALID_SPAN

    def _now(self) -> int:
        return self._timeline.now()


def start_group(options: TracingOptions = DEFAULT_OPTIONS, *, targets: int, timeline: Timeline) -> Group:
    """Begin a chain of `targets` targets; with a single one nothing is opened. `timeline` is the first
    target's: all spans of a call are on one clock."""
    return Group(options, targets, timeline)
