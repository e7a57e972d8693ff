"""An endpoint's answer, read as `AnswerReader` does."""

from __future__ import annotations

from typing import Any

from specclient_providers import AnswerReader, Measure, Reading, resolve


def read(
    provider: str, *events: Any, headers: dict[str, str] | None = None, elapsed: float | None = None
) -> Reading:
    reader = AnswerReader(resolve(provider, model="m"))
    reader.headers(headers or {})
    for event in events:
        reader.event(event)
    return reader.result(elapsed)


def seconds(measure: Measure | None) -> float | None:
    return None if measure is None else round(measure.seconds, 9)


def phases(reading: Reading) -> tuple[float | None, ...]:
    return tuple(
        seconds(measure)
        for measure in (
            reading.queue,
            reading.prefill,
            reading.decode,
            reading.time_to_first_token,
            reading.server_total,
        )
    )


def details(accepted: Any, rejected: Any, completion: int = 300) -> dict[str, Any]:
    pair = {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}
    return {"usage": {"completion_tokens": completion, "completion_tokens_details": pair}}


CHUNK = {"object": "chat.completion.chunk", "choices": []}
