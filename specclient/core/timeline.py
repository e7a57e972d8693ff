"""Stamps of one call on one clock.

The wall clock is read once, when the call starts; every later stamp is that moment plus the advance of
the monotonic clock. The wall clock may step while a call runs, the monotonic one may not, and times from
two clocks on one picture would lie.

First frame, first content and first answer are three different things: a server may send an empty role
frame before it has read the prompt, and reasoning before the answer. A frame holds all tokens that one
verification step accepted, so frames are never counted as tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from specclient.report import ClientTiming, Phase, Timing

NANOSECONDS = 1_000_000_000
TOLERANCE = 0.001
"""Seconds by which reported phases may overlap the client's own stamps: many servers round to 1 ms."""

MAX_GAPS = 512
"""Gaps kept for the metric of time per output chunk; a histogram needs no more from one call."""


@dataclass(frozen=True, slots=True)
class EnginePhases:
    """Stamps of the embedded engine, `time.perf_counter_ns()`: the clock of this process, so exact places."""

    submitted: int
    scheduled: int
    first_token: int
    finished: int

    @property
    def queue(self) -> Phase:
        return Phase(seconds=(self.scheduled - self.submitted) / NANOSECONDS, source="engine")

    @property
    def prefill(self) -> Phase:
        return Phase(seconds=(self.first_token - self.scheduled) / NANOSECONDS, source="engine")

    @property
    def decode(self) -> Phase:
        return Phase(seconds=(self.finished - self.first_token) / NANOSECONDS, source="engine")

    @property
    def time_to_first_token(self) -> Phase:
        return Phase(seconds=(self.first_token - self.submitted) / NANOSECONDS, source="engine")

    @property
    def server_total(self) -> Phase:
        return Phase(seconds=(self.finished - self.submitted) / NANOSECONDS, source="engine")


class AttemptStamps:
    """What the client saw of one try; nanoseconds of the monotonic clock, None where it never came.

    One is made for every call, traced or not, so what has not happened yet stands on the class and costs
    nothing.
    """

    loaded: int | None = None
    connected: int | None = None
    sent: int | None = None
    headers: int | None = None
    first_frame: int | None = None
    first_content: int | None = None
    first_answer: int | None = None
    last_content: int | None = None
    last_frame: int | None = None
    ended: int | None = None
    frames = 0
    content_frames = 0
    saw_reasoning = False
    max_gap = 0

    def __init__(self, started: int, waited: float = 0.0) -> None:
        self.started = started
        self.waited = waited
        self.gaps: list[int] = []

    @property
    def issued(self) -> int:
        """When the request was on the wire, as far as the transport could tell."""
        return self.started if self.sent is None else self.sent


class Timeline:
    """The stopwatch of one call. Every method is a clock read and a store; none raises.

    `attempt_started` begins a try (a call that never says so is one try from its start), and the stamps
    after it belong to that try. `frame` is any event of a stream, or the body of a plain answer;
    `content` says that the frame just stamped held text, reasoning, a refusal or tool arguments that are
    not empty, and `answer=False` that it was reasoning only.
    """

    __slots__ = ("_clock", "_current", "_pending_wait", "attempts", "ended", "started", "wall")

    def __init__(
        self,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._clock = clock
        self.started = clock()
        self.wall = wall()
        self.ended: int | None = None
        self._pending_wait = 0.0
        self._current = AttemptStamps(self.started)
        self.attempts: list[AttemptStamps] = []

    @property
    def attempt(self) -> AttemptStamps:
        """The last try: the one that phases belong to."""
        return self._current

    def attempt_started(self) -> None:
        now = self._clock()
        if self.attempts and self._current.ended is None:
            self._current.ended = now
        self._current = AttemptStamps(now, self._pending_wait)
        self._pending_wait = 0.0
        self.attempts.append(self._current)

    def attempt_ended(self) -> None:
        """The try is over (it failed, or its last byte came); the first call wins."""
        if self._current.ended is None:
            self._current.ended = self._clock()

    def waited(self, seconds: float) -> None:
        """Back-off spent before the next try."""
        self._pending_wait += seconds

    def loaded(self) -> None:
        """The engine that this try had to load is there."""
        self._current.loaded = self._clock()

    def connected(self) -> None:
        self._current.connected = self._clock()

    def sent(self) -> None:
        self._current.sent = self._clock()

    def headers(self) -> None:
        self._current.headers = self._clock()

    def frame(self) -> None:
        attempt = self._current
        now = attempt.last_frame = self._clock()
        attempt.frames += 1
        if attempt.first_frame is None:
            attempt.first_frame = now

    def content(self, answer: bool = True) -> None:
        attempt = self._current
        now = attempt.last_frame
        last = attempt.last_content
        if now is None or now == last:
            self.frame()
            now = cast(int, attempt.last_frame)
        attempt.last_content = now
        attempt.content_frames += 1
        if last is None:
            attempt.first_content = now
        else:
            gap = now - last
            if gap > attempt.max_gap:
                attempt.max_gap = gap
            if attempt.content_frames <= MAX_GAPS + 1:
                attempt.gaps.append(gap)
        if not answer:
            attempt.saw_reasoning = True
        elif attempt.first_answer is None:
            attempt.first_answer = now

    def text(self) -> None:
        """`frame` and `content` of an event of the answer's text, on one reading of the clock."""
        attempt = self._current
        last = attempt.last_content
        if last is None or attempt.first_answer is None:
            self.frame()
            self.content()
            return
        now = attempt.last_frame = attempt.last_content = self._clock()
        attempt.frames += 1
        attempt.content_frames += 1
        gap = now - last
        if gap > attempt.max_gap:
            attempt.max_gap = gap
        if attempt.content_frames <= MAX_GAPS + 1:
            attempt.gaps.append(gap)

    def done(self) -> None:
        """The call is over for the caller; the first call wins."""
        if self.ended is None:
            self.ended = self._clock()
            if self._current.ended is None:
                self._current.ended = self.ended

    def at(self, stamp: int) -> int:
        """A stamp of the monotonic clock as nanoseconds since the epoch, on this call's one wall reading."""
        return self.wall + (stamp - self.started)

    def now(self) -> int:
        """This moment as nanoseconds since the epoch, on the same reading."""
        return self.at(self._clock())

    def successor(self) -> Timeline:
        """The stopwatch of a further call that belongs to this one, on the same reading of the wall clock."""
        other = Timeline(clock=self._clock, wall=int)
        other.wall = self.at(other.started)
        return other

    def seconds(self, stamp: int) -> float:
        """A stamp as seconds since the call's start."""
        return (stamp - self.started) / NANOSECONDS

    def timing(self, reading: Any = None, *, streamed: bool) -> Timing:
        """The account of the time so far.

        `reading` is anything with `queue`, `prefill`, `decode`, `time_to_first_token` and `server_total`
        that are `Phase`-like (seconds and source) or None: an endpoint's reading, `EnginePhases`, or None
        when only the client's stopwatch is known.
        """
        attempt = self._current
        end = self.ended if self.ended is not None else self._clock()
        queue, prefill, decode = (_phase(reading, name) for name in ("queue", "prefill", "decode"))
        first_token = _phase(reading, "time_to_first_token")
        anchor, at = self._anchor(reading, streamed, end)
        issued = attempt.issued
        # A request is handed to the engine by a call that returns after the engine has stamped it.
        if isinstance(reading, EnginePhases):
            issued = min(issued, reading.submitted)
        placed, unattributed, consistent = None, None, None
        if anchor is not None and (queue or prefill or decode or first_token):
            before = _sum(queue, prefill) or (first_token.seconds if first_token else 0.0)
            after = decode.seconds if decode else 0.0
            lead = before + after if anchor == "response_end" else before
            unattributed = round(at - self.seconds(issued) - lead, 9)  # below the clock's own step is dust
            begin = at - _sum(queue, prefill)
            if anchor == "response_end":
                begin -= after
            finish = begin + _sum(queue, prefill, decode)
            consistent = unattributed >= -TOLERANCE and finish <= self.seconds(end) + TOLERANCE
            placed = max(begin, 0.0) if consistent and (queue or prefill or decode) else None
            unattributed = max(unattributed, 0.0) if consistent else unattributed
        if first_token is None and streamed and attempt.first_content is not None:
            first_token = Phase(seconds=_gap(attempt.started, attempt.first_content) or 0.0, source="client")
        return Timing(
            queue=queue,
            prefill=prefill,
            decode=decode,
            time_to_first_token=first_token,
            time_to_first_token_includes_queue=getattr(reading, "ttft_includes_queue", None),
            total=Phase(seconds=self.seconds(end), source="client"),
            server_total=_phase(reading, "server_total"),
            client=self._client(streamed, end),
            sent_at=self.seconds(issued),
            phases_at=placed,
            anchor=anchor if placed is not None else None,
            unattributed=unattributed,
            consistent=consistent,
        )

    def _anchor(
        self, reading: Any, streamed: bool, end: int
    ) -> tuple[Literal["first_content", "response_end", "engine_clock"] | None, float]:
        """The moment that both sides know: seconds since the call's start, and what it is."""
        attempt = self._current
        if isinstance(reading, EnginePhases):
            return "engine_clock", self.seconds(reading.first_token)
        if streamed:
            first = attempt.first_content
            return ("first_content", self.seconds(first)) if first is not None else (None, 0.0)
        received = attempt.last_frame if attempt.last_frame is not None else end
        return "response_end", self.seconds(received)

    def _client(self, streamed: bool, end: int) -> ClientTiming:
        attempt = self._current
        first = attempt.first_content if streamed else attempt.last_frame
        return ClientTiming(
            load=_gap(attempt.started, attempt.loaded),
            connect=_gap(attempt.started, attempt.connected),
            await_headers=_gap(attempt.issued, attempt.headers),
            await_content=_gap(attempt.headers if attempt.headers is not None else attempt.issued, first),
            receive=_gap(attempt.first_content, attempt.last_content) if streamed else None,
            first_frame=_gap(attempt.started, attempt.first_frame) if streamed else None,
            first_content=_gap(attempt.started, attempt.first_content) if streamed else None,
            first_answer=_gap(attempt.started, attempt.first_answer) if streamed else None,
            after=_gap(attempt.last_frame, end),
        )


def _gap(start: int | None, end: int | None) -> float | None:
    if start is None or end is None or end < start:
        return None
    return (end - start) / NANOSECONDS


def _sum(*phases: Phase | None) -> float:
    return sum(phase.seconds for phase in phases if phase is not None)


def _phase(reading: Any, name: str) -> Phase | None:
    """The phase as a `Phase`; nothing, zero, negative or not a number is "not reported"."""
    value: Any = getattr(reading, name, None)
    seconds = getattr(value, "seconds", None)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        return None
    return Phase(seconds=float(seconds), source=value.source)
