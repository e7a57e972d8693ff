"""Calls between two tries of an SDK.

An SDK retries by sending a new request, with a count in a header. So a call whose try failed in a way
that the SDK retries is left open and parked in the context; the retry, which comes in the same context
with the same body, takes it up again. A call that nobody takes up (the SDK had no tries left after all)
is ended when the next call of the context begins, or when the longest wait that an SDK makes is over.

mistralai counts nothing: it retries by time, as the retry configuration of its client says, and sends the
very same request again. (A `retries=` of a single call cannot be seen from below; its tries are calls of
their own.) A redirect that keeps the method is followed by the HTTP client, with the very same stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specclient.middleware.given_up import WAITING, Ticket

if TYPE_CHECKING:
    from specclient.middleware.call import WrappedCall

RETRY_COUNT = "x-stainless-retry-count"
USUAL_RETRIES = 2
"""What an SDK that sends the count retries unless told otherwise."""

LONGEST_BACKOFF = 8.0
"""Seconds; the ceiling of the back-off in all SDKs that send the count."""

LONGEST_ASKED = 3600.0
"""Seconds; no SDK is taken to wait longer, whatever a server asks for."""

_RETRIED = frozenset({408, 409, 429})


@dataclass(slots=True)
class Parked:
    """A call that waits for its next try."""

    call: WrappedCall
    request: Any = field(repr=False)
    since: float
    ticket: Ticket
    counted: bool


_parked: ContextVar[Parked | None] = ContextVar("specclient_parked_call", default=None)


def retry_count(headers: Mapping[str, str]) -> int | None:
    """Which retry this is (0: the first try); None where the SDK does not say."""
    value = headers.get(RETRY_COUNT)
    return int(value) if value is not None and value.isdigit() else None


def will_retry(count: int | None, limit: int | None, status: int | None, headers: Mapping[str, str]) -> bool:
    """Whether the SDK is going to try again after a try that failed (`status` None: without an answer)."""
    if count is None or count >= (USUAL_RETRIES if limit is None else limit):
        return False
    if status is None:
        return True
    said = headers.get("x-should-retry")
    if said in ("true", "false"):
        return bool(said == "true")
    return status in _RETRIED or status >= 500


def is_redirect(failed: int | BaseException, headers: Mapping[str, str]) -> bool:
    """Whether an HTTP client that follows redirects sends the same body to another address now."""
    return failed in (307, 308) and "location" in headers


_RETRIED_KINDS = frozenset({"NetworkError", "TimeoutException"})  # of either HTTP family
_RETRIED_BY_TIME = ("429", "500", "502", "503", "504")
"""What mistralai retries where its configuration names nothing else."""


@dataclass(frozen=True, slots=True)
class RetriesByTime:
    """The retries of an SDK that counts none; `configuration` is the SDK's own, asked anew each time."""

    configuration: Any

    def will_retry(self, failed: int | BaseException, elapsed: float) -> bool:
        """Whether a try that failed, by a status or without an answer, `elapsed` seconds into its call is
        repeated."""
        policy: Any = getattr(self.configuration, "retry_config", None)
        if getattr(policy, "strategy", None) != "backoff":
            return False
        if elapsed * 1000 > policy.backoff.max_elapsed_time:
            return False
        if isinstance(failed, BaseException):
            kinds = {base.__name__ for base in type(failed).__mro__}
            return bool(policy.retry_connection_errors and kinds & _RETRIED_KINDS)
        codes = getattr(policy, "status_codes_override", None) or _RETRIED_BY_TIME
        status = str(failed)
        return any(status[0] == code[0] if "X" in code.upper() else status == code for code in codes)

    @property
    def longest_wait(self) -> float:
        """Seconds."""
        return float(self.configuration.retry_config.backoff.max_interval) / 1000


def park(
    call: WrappedCall, request: Any, headers: Mapping[str, str], longest: float, *, counted: bool
) -> None:
    """Leave a call open for its next try, which comes within `longest` seconds if it comes."""
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        asked = 0.0
    if not 0 <= asked <= LONGEST_ASKED:
        asked = 0.0
    ticket = WAITING.add(call.give_up, max(asked, longest) + 5.0)
    _parked.set(Parked(call, request, time.perf_counter(), ticket, counted))


def resume(request: Any, count: int | None) -> tuple[WrappedCall, float] | None:
    """The parked call that this request (retry number `count`) goes on with, and the seconds it waited."""
    parked = _parked.get()
    if parked is None:
        return None
    _parked.set(None)
    WAITING.take_back(parked.ticket)
    if parked.counted:
        again = bool(count) and request.content == parked.request.content
    else:
        again = request.stream is parked.request.stream
    if again and not parked.call.end.ended:
        return parked.call, time.perf_counter() - parked.since
    parked.call.give_up()
    return None
