"""What a call's span is told: before anything is sent, and by the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specclient.core.timeline import Timeline


@dataclass(slots=True, kw_only=True)
class CallStart:
    """What is known of a call before anything is sent.

    `provider` is the telemetry name (`EndpointFacts.telemetry_name`), `body` the wire body, of which only
    parameters are read. `capability` is what the tables say of predictions there: documented,
    undocumented, refused, self_hosted or engine. `adapter` names the door: client, wrap or gateway.
    """

    provider: str
    operation: str = "chat"
    model: str | None = None
    server_address: str | None = None
    server_port: int | None = None
    stream: bool = False
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    in_process: bool = False
    capability: str | None = None
    adapter: str | None = None
    target: str | None = None
    workload: str | None = None
    prediction_chars: int | None = None
    prediction_tokens: int | None = None
    timeline: Timeline | None = None


@dataclass(slots=True, kw_only=True)
class ResponseFacts:
    """What the answer said of itself; None where it said nothing.

    `finish_reasons` has one entry a choice, None where none came. `first_chunk_tokens` is the number of
    tokens in the first content frame where that is known (from the engine or returned token ids, never
    from characters), `prediction_tokens` the engine's own count of the known text. `output` holds
    OpenAI-shaped messages and is read only where content is asked for.
    """

    id: str | None = None
    model: str | None = None
    finish_reasons: Sequence[str | None] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    first_chunk_tokens: int | None = None
    prediction_tokens: int | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    output: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    @classmethod
    def of(cls, reading: Any, **rest: Any) -> ResponseFacts:
        """The counts of an endpoint's reading (`specclient_providers.Reading`), and `rest` as given."""
        usage = reading.usage
        return cls(
            input_tokens=usage.prompt,
            output_tokens=usage.completion,
            cached_tokens=usage.cached,
            reasoning_tokens=usage.reasoning,
            **rest,
        )
