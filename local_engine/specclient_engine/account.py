"""The running account of one request, from its stamps and counts to its `GenerationStats`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

from specclient_engine.api import FinishReason, GenerationStats


@dataclass(slots=True)
class Account:
    """Counts what one request did. A stamp that was never reached takes the time of the end."""

    prompt_tokens: int
    submitted: int = field(default_factory=perf_counter_ns)
    scheduled: int | None = None
    first_token: int | None = None
    completion_tokens: int = 0
    forward_passes: int = 0
    cached_tokens: int = 0
    prediction_tokens: int | None = None
    drafting: int = 0
    verifying: int = 0
    held_back: int = 0
    drafted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    accepted_lengths: Counter[int] = field(default_factory=Counter)
    speculation_inactive: str | None = None
    draft_model_inactive: str | None = None

    def passed(self, sources: Sequence[str], accepted: int) -> None:
        """One decoding pass verified a draft with these sources (none: no draft)."""
        self.forward_passes += 1
        if sources:
            self.drafted.update(sources)
            self.accepted.update(sources[:accepted])
            self.accepted_lengths[accepted] += 1

    def close(self, reason: FinishReason) -> GenerationStats:
        """The account at the end of the request."""
        finished = perf_counter_ns()
        longest = max(self.accepted_lengths, default=-1)
        return GenerationStats(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cached_tokens=self.cached_tokens,
            forward_passes=self.forward_passes,
            by_source={name: (count, self.accepted[name]) for name, count in self.drafted.items()},
            acceptance_histogram=tuple(self.accepted_lengths[n] for n in range(longest + 1)),
            submitted=self.submitted,
            scheduled=self.scheduled if self.scheduled is not None else finished,
            first_token=self.first_token if self.first_token is not None else finished,
            finished=finished,
            prediction_tokens=self.prediction_tokens,
            drafting=self.drafting,
            verifying=self.verifying,
            held_back=self.held_back,
            finish_reason=reason,
            speculation_inactive=self.speculation_inactive,
            draft_model_inactive=self.draft_model_inactive,
        )
