"""Ends a call exactly once, on whichever way out it takes.

A stream can end by exhaustion, `close`, leaving a `with` block, an exception in the reader's loop, an
error of the provider, cancellation, or by being dropped and collected. All ways lead to one `Finaliser`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Literal

from opentelemetry.trace import Span

log = logging.getLogger(__name__)

CallOutcome = Literal["completed", "closed_by_caller", "cancelled", "error", "abandoned"]
Settle = Callable[[CallOutcome, BaseException | None], None]


def outcome_of(error: BaseException | None) -> CallOutcome:
    """How a call ended that ended with `error`.

    `GeneratorExit` is a caller that stopped reading. A cancelled task and an interrupt are "cancelled".
    """
    if error is None:
        return "completed"
    if isinstance(error, GeneratorExit):
        return "closed_by_caller"
    return (
        "cancelled" if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit) else "error"
    )


def end_span(span: Span, at: int) -> None:
    """End a span at `at` nanoseconds since the epoch. Processors of the application run inside; what they
    raise is no concern of the call."""
    try:
        span.end(at)
    except Exception:
        log.debug("a span processor failed", exc_info=True)


class Finaliser:
    """The one end of a call: the first way out that reports wins, and the rest do nothing.

    `settle(outcome, error)` stops the clock, builds the report and finishes the span. It must hold the
    state of the call and not the stream object that the caller holds, or that object is never collected.
    """

    __slots__ = ("_first", "_settle", "_watch")

    def __init__(self, settle: Settle) -> None:
        self._settle: Settle | None = settle
        self._first = threading.Lock()
        self._watch: weakref.finalize[..., object] | None = None

    def watch(self, owner: object) -> None:
        """End the call as "abandoned" when `owner` is collected before any other end."""
        self._watch = weakref.finalize(owner, _abandon, self)

    @property
    def ended(self) -> bool:
        return self._first.locked()

    def __call__(self, outcome: CallOutcome, error: BaseException | None = None) -> bool:
        """Report an end; True if this was the one that counted."""
        if not self._first.acquire(blocking=False):
            return False
        if self._watch is not None:
            self._watch.detach()
        # Let go of: who settles usually holds this object, and the prompt would wait for the collector.
        settle, self._settle = self._settle, None
        assert settle is not None
        settle(outcome, error)
        return True

    def completed(self) -> bool:
        return self("completed")

    def closed(self) -> bool:
        """The caller stopped reading before the end."""
        return self("closed_by_caller")

    def failed(self, error: BaseException) -> bool:
        return self(outcome_of(error), error)


def _abandon(finaliser: Finaliser) -> None:
    finaliser("abandoned")
