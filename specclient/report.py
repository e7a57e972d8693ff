"""What a call did with its prediction, and where its time went.

One `Report` is attached to every answer, on every door: as the attribute `specclient` of a response
and of a stream's last chunk, as the key `"specclient"` in JSON, and as attributes of the call's span.

Two rules hold for every figure here. `None` means *not reported*, never zero. And every figure that
could have been measured by more than one party says who measured it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["forwarded", "local", "via_prompt", "via_corpus", "withheld", "none"]
"""Where the prediction went.

`forwarded` on the wire in the endpoint's documented shape; `local` verified by the embedded engine;
`via_prompt` the server drafts from the prompt, and the text is there; `via_corpus` loaded into the
server's draft corpus; `withheld` not sent, the reasons say why; `none` no prediction was given.
"""

Effect = Literal["used", "unused", "unknown"]
"""Whether the prediction was used. A 200 proves nothing: only counters that moved do."""

PhaseSource = Literal["server", "engine", "derived"]
"""Who timed a phase: the answering server, the engine in this process, or arithmetic on the two."""

CountSource = Literal["provider_usage", "provider_metrics", "engine"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reason(_Frozen):
    """Why something was decided: a stable `code`, a sentence for people, and the source of the fact."""

    code: str
    text: str
    source: str | None = None

    def __str__(self) -> str:
        return self.text if self.source is None else f"{self.text} ({self.source})"


class Phase(_Frozen):
    """A duration in seconds, and who measured it."""

    seconds: float
    source: PhaseSource | Literal["client"]


class ClientTiming(_Frozen):
    """The caller's own stopwatch, in seconds: what can be seen from outside the server.

    `load` until an embedded engine was loaded (None: it was there, or it is another's), `connect` to an
    open connection (None: reused or in process), `await_headers` from the request's
    last byte to the response's headers, `await_content` from there to the first content (a role-only
    frame is not content), `receive` from the first content to the last, `after` from the last frame to
    the call's end. `first_frame`, `first_content` and `first_answer` (streams only) count from the start
    of the successful attempt: any event, the first text or reasoning, the first text of the answer.
    """

    load: float | None = None
    connect: float | None = None
    await_headers: float | None = None
    await_content: float | None = None
    receive: float | None = None
    after: float | None = None
    first_frame: float | None = None
    first_content: float | None = None
    first_answer: float | None = None


class Timing(_Frozen):
    """Where one call's time went.

    `queue`, `prefill` and `decode` are None unless the server or the engine reported them, or they
    follow from what it reported. `unattributed` is the part of the time before the first content that
    nobody claims (network, gateway, tokeniser); it is never folded into a phase. `consistent` is False
    when the reported phases do not fit into the call as the client saw it; then no phase is drawn.

    `total` is what the caller waited, `server_total` what the server says it took. `sent_at` and
    `phases_at` are seconds from the call's start: when the successful attempt's request was on the wire,
    and where the first phase begins (phases follow each other without a gap). `anchor` is the moment
    both sides know that the phases were hung on: the first content of a stream, the end of a plain
    answer or of a stream whose decode began before its first content came, or the engine's own stamps on
    this process's clock.
    """

    queue: Phase | None = None
    prefill: Phase | None = None
    decode: Phase | None = None
    time_to_first_token: Phase | None = None
    time_to_first_token_includes_queue: bool | None = None
    total: Phase | None = None
    server_total: Phase | None = None
    client: ClientTiming = ClientTiming()
    sent_at: float | None = None
    phases_at: float | None = None
    anchor: Literal["first_content", "response_end", "engine_clock"] | None = None
    unattributed: float | None = None
    consistent: bool | None = None


class PredictionReport(_Frozen):
    """What the prediction bought.

    `accepted_tokens` and `rejected_tokens` are the endpoint's own counts, and both lie inside
    `usage.completion_tokens` where the endpoint says so; `extra_billed_tokens` are those billed beyond
    the visible output. `drafted_tokens` counts what a speculating server or the engine tried, from any
    draft source.
    """

    outcome: Outcome = "none"
    effect: Effect = "unknown"
    reasons: tuple[Reason, ...] = ()
    accepted_tokens: int | None = None
    rejected_tokens: int | None = None
    drafted_tokens: int | None = None
    acceptance_rate: float | None = None
    extra_billed_tokens: int | None = None
    source: CountSource | None = None


class Speculation(_Frozen):
    """How the answering engine decoded, where it says so.

    `draft_tokens` and `accepted_draft_tokens` are from every draft source together;
    `mean_acceptance_length` is in tokens per verification step, the corrected token included.
    """

    forward_passes: int | None = None
    draft_tokens: int | None = None
    accepted_draft_tokens: int | None = None
    mean_acceptance_length: float | None = None
    by_source: dict[str, tuple[int, int]] | None = None
    """Draft source -> (drafted, accepted)."""
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    """The parts of the decoding that went by making drafts, and in the target's passes."""
    held_back_tokens: int | None = None
    """Draft tokens that were left out because other requests shared the passes."""
    inactive_reason: str | None = None


class Estimate(_Frozen):
    """A figure that was estimated, and where it lies with 95 % confidence (None: no interval is known)."""

    mean: float
    low: float | None = None
    high: float | None = None


class Economics(_Frozen):
    """Whether the prediction was worth it.

    `baseline` says what the call was compared with: `holdout` calls of the same target, model and
    workload that ran without their prediction, `reported` counters of the endpoint itself (what as many
    plain decoding steps would have taken), or None when nothing is known. `seconds_saved` is this call's;
    negative when it lost time. `seconds_saved_per_token` is the workload's. `money_added` is what was
    billed beyond the visible output, at the target's own prices. `calls_sent` and `calls_without` are the
    calls that the comparison rests on, old ones counting less; None where nobody counts.
    """

    gate: Literal["always", "auto", "never"] = "always"
    decision: str | None = None
    baseline: Literal["holdout", "reported"] | None = None
    seconds_saved: Estimate | None = None
    seconds_saved_per_token: Estimate | None = None
    money_added: float | None = None
    calls_sent: float | None = None
    calls_without: float | None = None


class Attempt(_Frozen):
    """One try at one target. `error` is a class name, never a message that could hold content."""

    target: str
    provider: str
    model: str | None = None
    status: int | None = None
    error: str | None = None
    seconds: float
    waited: float = 0.0
    """Seconds of back-off before this try."""


class Usage(_Frozen):
    """The endpoint's own token counts. `cached` lies inside `prompt`, `reasoning` inside `completion`."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None


CHANGES = frozenset(
    {
        "length_raised",
        "length_renamed",
        "length_duplicate",
        "reasoning_history",
        "shape",
        "stream_options_without_stream",
    }
)
"""Codes of the notes about parameters that were not sent as they were given."""


class Report(_Frozen):
    """The whole account of one call."""

    target: str
    provider: str
    model: str | None = None
    attempts: tuple[Attempt, ...] = ()
    request_id: str | None = None
    """The endpoint's name for the request, else the one that was sent to a server that takes one."""
    usage: Usage = Usage()
    prediction: PredictionReport = PredictionReport()
    timing: Timing = Timing()
    speculation: Speculation | None = None
    economics: Economics | None = None
    notes: tuple[Reason, ...] = ()
    """Everything else that was mapped, withheld, refused or mistrusted on the way."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Which parameters were not sent as they were given: codes of the notes that tell how."""
        return changes(self.notes)


def changes(notes: Iterable[Reason]) -> tuple[str, ...]:
    """The codes of those that tell of a parameter that was not sent as it was given."""
    return tuple(note.code for note in notes if note.code in CHANGES)
