"""What one answer said: token counts, and times with their sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from specclient_providers.sanity import Source


@dataclass(frozen=True, slots=True)
class Measure:
    """A duration in seconds, whether the server reported it or it was derived, and from where."""

    seconds: float
    source: Source
    field: str


@dataclass(slots=True)
class Usage:
    """Token counts of a call; None is "not reported". `cached` and `reasoning` are subsets.

    Nobody changes one, nor a `Reading`. They are not frozen because every answer makes both, and a frozen one
    takes three times as long to make.
    """

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(slots=True)
class Reading:
    """One answer's figures. Times are `Measure`s, counts are tokens, None is "not reported".

    `accepted` and `rejected` are of the prediction; `drafted` and `accepted_draft` of the server's own
    speculation from whatever source. `extra_billed` is what was charged beyond the visible output:
    accepted tokens are ordinary output and never counted again.
    """

    usage: Usage = field(default_factory=Usage)
    accepted: int | None = None
    rejected: int | None = None
    drafted: int | None = None
    accepted_draft: int | None = None
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    forward_passes: int | None = None
    queue: Measure | None = None
    prefill: Measure | None = None
    decode: Measure | None = None
    time_to_first_token: Measure | None = None
    server_total: Measure | None = None
    ttft_includes_queue: bool | None = None
    counts_source: Literal["provider_usage", "provider_metrics"] | None = None
    extra_billed: int | None = None
    notes: tuple[tuple[str, str], ...] = ()
