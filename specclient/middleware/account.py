"""What an answer said, and the report that is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import from_json, to_json

from specclient import tracing
from specclient.core import account
from specclient.core.errors import REQUEST_ID_HEADERS, error_in
from specclient.core.stamps import NANOSECONDS, AttemptStamps
from specclient.core.timeline import Timeline
from specclient.middleware.decided import Decided
from specclient.report import Reason
from specclient_providers import AnswerReader, Reading

_REASONING = ("reasoning_content", "reasoning", "thinking")
_REQUEST_IDS = tuple(name.encode() for name in REQUEST_ID_HEADERS)
_ENVELOPE = ("id", "model", "service_tier", "system_fingerprint")
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

    def headers(self, headers: Mapping[bytes, bytes]) -> None:
        """Take the name of the request from the response headers, by lower-case name."""
        for name in _REQUEST_IDS:
            if (told := headers.get(name)) is not None:
                self.request_id = told.decode("latin-1")
                return

    def event(self, data: Mapping[str, Any]) -> Literal["answer", "reasoning"] | None:
        """Take note of one event or body; what kind of content it holds."""
        self.reader.event(data)
        for name in _ENVELOPE:
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
    for name in _ANSWER:
        if delta.get(name):
            return "answer"
    for name in _REASONING:
        if delta.get(name):
            return "reasoning"
    return None


def report_on(
    decided: Decided,
    timeline: Timeline,
    tried: list[Tried],
    answer: Answer,
    reading: Reading,
    speculation: Mapping[str, Any] | None,
    *,
    streamed: bool,
) -> dict[str, Any]:
    """The whole account of a call that has ended, as plain data."""
    data: dict[str, Any] = {
        **decided.named,
        "attempts": [
            _attempt(decided.named, how, stamps) for how, stamps in zip(tried, timeline.attempts, strict=True)
        ],
        "usage": account.usage_data(reading),
        "timing": timeline.timing_data(reading, streamed=streamed),
    }
    if answer.request_id is not None:
        data["request_id"] = answer.request_id
    if speculation is not None:
        data["speculation"] = speculation
    told = reading.counts_source is not None or reading.rejected is not None or reading.drafted is not None
    if told or reading.notes or answer.notes:
        said = {
            "prediction": account.prediction_data(decided.plan, reading),
            "notes": (*decided.notes, *account.answer_notes(reading), *answer.notes),
        }
        data |= from_json(to_json(said, exclude_none=True))
    else:
        data |= from_json(decided.silence)
    return data


def _attempt(named: Mapping[str, Any], how: Tried, stamps: AttemptStamps) -> dict[str, Any]:
    seconds = ((stamps.ended or stamps.started) - stamps.started) / NANOSECONDS
    attempt = {**named, "seconds": seconds, "waited": stamps.waited}
    if how.status is not None:
        attempt["status"] = how.status
    if how.error is not None:
        attempt["error"] = how.error
    return attempt
