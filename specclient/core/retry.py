"""Whether, and after how long, one target is asked again: OpenAI's rules on tenacity's arithmetic.

Rules as in openai-python: `x-should-retry` decides where it is given, then 408, 409, 429 and 5xx (529
included) and broken connections are retried; `retry-after-ms` and `retry-after` (seconds or an HTTP date)
are honoured up to 120 s, and a longer wait fails now, with the wait in the error; without them the wait
is 0.5 s · 2ⁿ, at most 8 s, up to a quarter of it taken off at random.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from specclient.errors import APIConnectionError, APIError, APIStatusError, APITimeoutError, ConfigError

RETRY_AFTER_CAP = 120.0
_FIRST_WAIT, _LONGEST_WAIT, _JITTER = 0.5, 8.0, 0.25


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None where it does not say, or says nonsense."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            if name != "retry-after":
                continue
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def retryable(error: BaseException) -> bool:
    """Whether asking the same target again may help. False for everything that is not an API error."""
    if isinstance(error, APIStatusError):
        if error.retry_after is not None and error.retry_after > RETRY_AFTER_CAP:
            return False
        asked = error.headers.get("x-should-retry", "").strip().lower()
        if asked in ("true", "false"):
            return asked == "true"
        return error.status_code in (408, 409, 429) or error.status_code >= 500
    if isinstance(error, APITimeoutError):
        return error.limit != "total"
    return isinstance(error, APIConnectionError)


class Retries:
    """The retries of one target within one call. `left` is the time that the call still has, if limited.

    Raises ConfigError for a number of retries that is none.
    """

    def __init__(self, max_retries: int) -> None:
        if type(max_retries) is not int or max_retries < 0:
            raise ConfigError(f"max_retries is a whole number of at least 0, not {max_retries!r}.")
        self._max = max_retries
        self._state: Any = None

    def after(self, error: APIError, left: float | None) -> float | None:
        """Seconds to wait before the next try, or None when there is none."""
        from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
        from tenacity.wait import wait_exponential

        if self._state is None:
            policy = Retrying(
                retry=retry_if_exception(retryable),
                stop=stop_after_attempt(self._max + 1),
                wait=wait_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            )
            self._state = RetryCallState(policy, None, (), {})
        state, policy = self._state, self._state.retry_object
        state.set_exception((type(error), error, error.__traceback__))
        if not policy.retry(state) or policy.stop(state):
            return None
        asked = error.retry_after if isinstance(error, APIStatusError) else None
        wait = float(asked or policy.wait(state) * (1 - _JITTER * random.random()))
        state.prepare_for_next_attempt()
        return None if left is not None and wait >= left else wait
