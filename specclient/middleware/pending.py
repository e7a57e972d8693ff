"""Calls between two tries of an SDK.

An SDK retries by sending a new request (`sdk_retries.py` tells when). So a call whose try failed in a way
that the SDK retries is left open and parked in the context; the retry, which comes in the same context with
the same body, takes it up again. A call that nobody takes up (the SDK had no tries left after all) is ended
when the next call of the context begins, or when the longest wait that an SDK makes is over.

mistralai sends the very same request again. A redirect that keeps the method is followed by the HTTP client,
with the very same stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specclient.middleware.given_up import WAITING, Ticket

if TYPE_CHECKING:
    from specclient.middleware.tries import Tries

LONGEST_ASKED = 3600.0
"""Seconds; no SDK is taken to wait longer, whatever a server asks for."""


@dataclass(slots=True)
class Parked:
    """A call that waits for its next try."""

    call: Tries
    request: Any = field(repr=False)
    since: float
    ticket: Ticket
    counted: bool
    """Whether the SDK numbers its tries. If not, the next try is known by its stream: it has the same one."""


_parked: ContextVar[Parked | None] = ContextVar("specclient_parked_call", default=None)

parked = _parked.get
"""The call that waits in this context for its next try."""


def park(call: Tries, request: Any, headers: Mapping[str, str], longest: float, *, counted: bool) -> None:
    """Leave a call open for its next try, which comes within `longest` seconds if it comes."""
    from specclient.core.retry import retry_after  # which brings tenacity; most calls need no second try

    asked = retry_after(headers) or 0.0
    if asked > LONGEST_ASKED:
        asked = 0.0
    ticket = WAITING.add(call.give_up, max(asked, longest) + 5.0)
    _parked.set(Parked(call, request, time.perf_counter(), ticket, counted))


def resume(request: Any, count: int | None) -> tuple[Tries, float] | None:
    """The parked call that this request (retry number `count`) goes on with, and the seconds it waited."""
    waiting = parked()
    if waiting is None:
        return None
    _parked.set(None)
    WAITING.take_back(waiting.ticket)
    if waiting.counted:
        again = bool(count) and request.content == waiting.request.content
    else:
        again = request.stream is waiting.request.stream
    if again and not waiting.call.end.ended:
        return waiting.call, time.perf_counter() - waiting.since
    waiting.call.give_up()
    return None
