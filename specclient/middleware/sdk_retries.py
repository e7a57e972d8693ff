"""Whether an SDK is going to try again after a try that failed. Pure.

Most SDKs send the number of the try in a header. mistralai counts nothing: it retries by time, as the retry
configuration of its client says. (A `retries=` of a single call cannot be seen from below; its tries are
calls of their own.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RETRY_COUNT = b"x-stainless-retry-count"
USUAL_RETRIES = 2
"""What an SDK that sends the count retries unless told otherwise."""

LONGEST_BACKOFF = 8.0
"""Seconds; the ceiling of the back-off in all SDKs that send the count."""

_RETRIED = frozenset({408, 409, 429})
_RETRIED_KINDS = frozenset({"NetworkError", "TimeoutException"})  # of either HTTP family
_RETRIED_BY_TIME = ("429", "500", "502", "503", "504")
"""What mistralai retries where its configuration names nothing else."""


def retry_count(headers: Mapping[bytes, bytes]) -> int | None:
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
