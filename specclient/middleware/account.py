"""What an answer said, and the report that is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from specclient import tracing
from specclient.core import account
from specclient.core.errors import error_in, request_id
from specclient.core.plan import Plan
from specclient.core.stamps import NANOSECONDS
from specclient.core.timeline import Timeline
from specclient.middleware.late import LateReport
from specclient.report import Reason
from specclient_providers import AnswerReader, Reading

_REASONING = ("reasoning_content", "reasoning", "thinking")
_ANSWER = ("content", "refusal", "tool_calls", "function_call", "audio")


@dataclass(slots=True)
class Tried:
    """How one try ended; `error` is a name, never a message."""

    status: int | None = None
    error: str | None = None


class ErrorInAnswer(Exception):
    """An error object came with a status of success. Never raised: it names the fault in telemetry."""


class StatusError(Exception):
    """The SDK got an error status. Never raised: it names the fault in telemetry."""

    def __init__(self, status: int | None) -> None:
        super().__init__(f"HTTP status {status}")
        self.status_code = status


class NoAnswer(Exception):
    """The SDK got no answer. Never raised."""


class NotJson(Exception):
    """An answer, or an event that the SDK left the stream at, is no JSON object. Never raised."""


class IncompleteStream(Exception):
    """The stream ended without saying so. Never raised: the SDK decides what to make of it."""


@dataclass(slots=True)
class Answer:
    """Everything read off an answer, event by event."""

    reader: AnswerReader
    id: str | None = None
    model: str | None = None
    request_id: str | None = None
    finish_reasons: dict[int, str] = field(default_factory=dict)
    error: bool = False
    notes: list[Reason] = field(default_factory=list)
    service_tier: str | None = None
    system_fingerprint: str | None = None

    @property
    def failure(self) -> Exception | None:
        return ErrorInAnswer("the answer holds an error object") if self.error else None

    def headers(self, headers: Mapping[str, str]) -> None:
        """Take the response headers, by lower-case name."""
        self.reader.headers(headers)
        self.request_id = request_id(headers)

    def event(self, data: Mapping[str, Any]) -> Literal["answer", "reasoning"] | None:
        """Take note of one event or body; what kind of content it holds."""
        self.reader.event(data)
        for name in ("id", "model", "service_tier", "system_fingerprint"):
            told = data.get(name)
            if told and isinstance(told, str):
                setattr(self, name, told)
        self.error = self.error or error_in(data) is not None
        kind: Literal["answer", "reasoning"] | None = None
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not (type(choice) is dict or isinstance(choice, Mapping)):
                continue
            reason, index = choice.get("finish_reason"), choice.get("index")
            if reason is not None:
                self.finish_reasons[index if isinstance(index, int) else 0] = str(reason)
            kind = _content_of(choice) or kind
        return kind

    def reading(self, elapsed: float) -> Reading:
        """The figures; `elapsed` is the call's length in seconds, which no reported time can exceed."""
        return self.reader.result(elapsed)

    def facts(self, reading: Reading) -> tracing.ResponseFacts:
        """The answer for telemetry."""
        usage = reading.usage
        return tracing.ResponseFacts(
            id=self.id,
            model=self.model,
            finish_reasons=[self.finish_reasons[index] for index in sorted(self.finish_reasons)],
            input_tokens=usage.prompt,
            output_tokens=usage.completion,
            cached_tokens=usage.cached,
            reasoning_tokens=usage.reasoning,
            service_tier=self.service_tier,
            system_fingerprint=self.system_fingerprint,
        )


def _content_of(choice: Mapping[str, Any]) -> Literal["answer", "reasoning"] | None:
    """An empty string is no content: many servers open a stream with one before they read the prompt."""
    delta = choice.get("delta") or choice.get("message")
    if not (type(delta) is dict or isinstance(delta, Mapping)):
        return "answer" if choice.get("text") else None
    if any(delta.get(name) for name in _ANSWER):
        return "answer"
    return "reasoning" if any(delta.get(name) for name in _REASONING) else None


def report_on(
    name: str,
    plan: Plan,
    timeline: Timeline,
    tried: list[Tried],
    answer: Answer,
    reading: Reading,
    streamed: bool,
) -> LateReport:
    """The whole account of a call that has ended; `name` is the target's."""
    facts = plan.facts
    attempts = [
        account.known(
            {
                "target": name,
                "provider": facts.provider,
                "model": facts.model,
                "status": how.status,
                "error": how.error,
                "seconds": ((stamps.ended or stamps.started) - stamps.started) / NANOSECONDS,
                "waited": stamps.waited,
            }
        )
        for how, stamps in zip(tried, timeline.attempts, strict=True)
    ]
    data = {
        "target": name,
        "provider": facts.provider,
        "model": facts.model,
        "attempts": attempts,
        "request_id": answer.request_id,
        "usage": account.usage_data(reading),
        "prediction": account.prediction_data(plan, reading),
        "timing": timeline.timing_data(reading, streamed=streamed),
        "speculation": account.speculation_data(reading),
        "notes": (*plan.notes, *account.answer_notes(reading), *answer.notes),
    }
    return LateReport(account.known(data))
