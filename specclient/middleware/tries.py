"""The tries of one call: what each came to, and whether the SDK makes another."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specclient import tracing
from specclient.core.stamps import NANOSECONDS
from specclient.core.timeline import Timeline
from specclient.middleware import pending
from specclient.middleware.account import NoAnswer, StatusError, Tried
from specclient.middleware.context import Block
from specclient.middleware.sdk_retries import LONGEST_BACKOFF, is_redirect, will_retry
from specclient.middleware.settings import Settings
from specclient.middleware.steps import as_text


@dataclass(slots=True)
class Asked:
    """What the SDK asks: its request, the body as an object and as it came, and what was set beside it."""

    request: Any
    body: dict[str, Any]
    content: bytes
    block: Block | None
    workload: str | None


class Tries:
    """A call as long as the SDK may still try again."""

    end: tracing.Finaliser
    """The call's one way out."""

    def __init__(self, settings: Settings, asked: Asked, retries: int | None) -> None:
        self.settings = settings
        self.timeline = Timeline()
        self._asked = asked
        self._retries = retries
        self._tried: list[Tried] = []
        self._begun = False
        """Whether anything of an answer's body has been looked at: from then on the SDK cannot try again."""

    def attempt_started(self) -> None:
        self.timeline.attempt_started()
        self._tried.append(Tried())

    def resumed(self, retries: int | None, waited: float) -> None:
        """The SDK tries again."""
        self.timeline.waited(waited)
        self._retries = retries

    def answered_with_error(self, status: int, headers: Mapping[bytes, bytes]) -> None:
        """The answer is an error, which the SDK gets; it may try again."""
        self._tried[-1].error = f"HTTP {status}"
        self.timeline.attempt_ended()
        if not self._left_open(status, as_text(headers)):
            self.end("error", StatusError(status))

    def attempt_failed(self, error: BaseException) -> None:
        """No answer came, or its body broke off before the SDK got any of it."""
        self._tried[-1].error = type(error).__name__
        self.timeline.attempt_ended()
        if not (isinstance(error, Exception) and self._left_open(error, {})):
            self.end.failed(error)

    def _left_open(self, failed: int | BaseException, headers: Mapping[str, str]) -> bool:
        """Whether the SDK is going to try again; the call is then left open for it."""
        if self._begun:
            return False
        by_time = self.settings.by_time
        if is_redirect(failed, headers):
            pending.park(self, self._asked.request, headers, 0.0, counted=False)
        elif by_time is None:
            status = failed if isinstance(failed, int) else None
            if not will_retry(self._retries, self.settings.max_retries, status, headers):
                return False
            pending.park(self, self._asked.request, headers, LONGEST_BACKOFF, counted=True)
        else:
            elapsed = (time.perf_counter_ns() - self.timeline.started) / NANOSECONDS
            if not by_time.will_retry(failed, elapsed):
                return False
            pending.park(self, self._asked.request, headers, by_time.longest_wait, counted=False)
        return True

    def give_up(self) -> None:
        """The SDK did not try again: the last try's failure was the call's."""
        tried = self._tried[-1]
        self.end("error", NoAnswer(tried.error) if tried.status is None else StatusError(tried.status))
