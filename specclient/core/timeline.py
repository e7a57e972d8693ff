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
from typing import Any, Literal

from specclient.core.stamps import NANOSECONDS, AttemptStamps, EnginePhases
from specclient.report import Timing

TOLERANCE = 0.001
"""Seconds by which reported phases may overlap the client's own stamps: many servers round to 1 ms."""

MAX_GAPS = 512
"""Gaps kept for the metric of time per output chunk; a histogram needs no more from one call."""


class Timeline:
    """The stopwatch of one call. Every method is a clock read and a store; none raises.

    `attempt_started` begins a try (a call that never says so is one try from its start), and the stamps
    after it belong to that try. `frame` is any event of a stream, or the body of a plain answer;
    `content` says that the frame just stamped held text, reasoning, a refusal or tool arguments that are
    not empty, and `answer=False` that it was reasoning only.
    """

    __slots__ = ("_clock", "_pending_wait", "attempt", "attempts", "ended", "started", "wall")

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
        self.attempt = AttemptStamps(self.started)
        """The last try: the one that phases belong to."""
        self.attempts: list[AttemptStamps] = []

    def attempt_started(self) -> None:
        now = self._clock()
        if not self.attempts:
            self.attempt.started, self.attempt.waited = now, self._pending_wait
            self.attempts.append(self.attempt)
            self._pending_wait = 0.0
            return
        if self.attempt.ended is None:
            self.attempt.ended = now
        self.attempt = AttemptStamps(now, self._pending_wait)
        self._pending_wait = 0.0
        self.attempts.append(self.attempt)

    def attempt_ended(self) -> None:
        """The try is over (it failed, or its last byte came); the first call wins."""
        if self.attempt.ended is None:
            self.attempt.ended = self._clock()

    def waited(self, seconds: float) -> None:
        """Back-off spent before the next try."""
        self._pending_wait += seconds

    def loaded(self) -> None:
        """The engine that this try had to load is there."""
        self.attempt.loaded = self._clock()

    def connected(self) -> None:
        self.attempt.connected = self._clock()

    def sent(self) -> None:
        self.attempt.sent = self._clock()

    def headers(self) -> None:
        self.attempt.headers = self._clock()

    def frame(self) -> None:
        attempt = self.attempt
        now = attempt.last_frame = self._clock()
        attempt.frames += 1
        if attempt.first_frame is None:
            attempt.first_frame = now

    def content(self, answer: bool = True) -> None:
        attempt = self.attempt
        now = attempt.last_frame
        last = attempt.last_content
        if now is None or now == last:
            self.frame()
            now = attempt.last_frame
            assert now is not None
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
        attempt = self.attempt
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
            if self.attempt.ended is None:
                self.attempt.ended = self.ended

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

    def seconds_of_attempt(self) -> float:
        """How long the last try has been going on, or went on."""
        attempt = self.attempt
        end = attempt.ended if attempt.ended is not None else self._clock()
        return (end - attempt.started) / NANOSECONDS

    def timing(self, reading: Any = None, *, streamed: bool) -> Timing:
        """The account of the time so far; `reading` as for `timing_data`."""
        return Timing.model_validate(self.timing_data(reading, streamed=streamed))

    def timing_data(self, reading: Any = None, *, streamed: bool) -> dict[str, Any]:
        """What a `Timing` is made of, without what is not known.

        `reading` is anything with `queue`, `prefill`, `decode`, `time_to_first_token` and `server_total`
        that are `Phase`-like (seconds and source) or None: an endpoint's reading, `EnginePhases`, or None
        when only the client's stopwatch is known.
        """
        attempt, started = self.attempt, self.started
        end = self.ended if self.ended is not None else self._clock()
        issued = attempt.issued
        client = self._client(streamed, issued, end)
        # A request is handed to the engine by a call that returns after the engine has stamped it.
        if isinstance(reading, EnginePhases):
            issued = min(issued, reading.submitted)
        data: dict[str, Any] = {
            "total": {"seconds": (end - started) / NANOSECONDS, "source": "client"},
            "client": client,
            "sent_at": (issued - started) / NANOSECONDS,
        }
        if reading is not None:
            placed = False
            for name in _PHASES:
                phase = getattr(reading, name, None)
                if phase is not None and _is_reported(phase):
                    data[name] = {"seconds": float(phase.seconds), "source": phase.source}
                    placed = placed or name in _PLACED
            if placed:
                self._place(data, reading, streamed, issued, end)
        if streamed and "time_to_first_token" not in data and attempt.first_content is not None:
            seconds = client.get("first_content", 0.0)
            data["time_to_first_token"] = {"seconds": seconds, "source": "client"}
        includes = getattr(reading, "ttft_includes_queue", None)
        if includes is not None:
            data["time_to_first_token_includes_queue"] = includes
        return data

    def _place(self, data: dict[str, Any], reading: Any, streamed: bool, issued: int, end: int) -> None:
        """Hang the reported phases on the moment that both sides know, if they fit."""
        anchor, at = self._anchor(reading, streamed, end)
        if anchor is None:
            return
        phases = {name: data[name]["seconds"] for name in ("queue", "prefill", "decode") if name in data}
        first_token = data.get("time_to_first_token")
        waited, decode = phases.get("queue", 0.0) + phases.get("prefill", 0.0), phases.get("decode", 0.0)
        if anchor == "first_content" and at + decode > self.seconds(end) + TOLERANCE:
            # The server decoded before we saw any of it: some hold back the first tokens of an answer.
            anchor, at = "response_end", self._received(end)
        before = waited or (first_token["seconds"] if first_token else 0.0)
        after = decode if anchor == "response_end" else 0.0
        left = at - self.seconds(issued) - before - after
        unattributed = round(left, 9) + 0.0  # less than a clock's step is dust, and -0.0 is 0
        fits = at - after + decode <= self.seconds(end) + TOLERANCE
        data["consistent"] = consistent = unattributed >= -TOLERANCE and fits
        data["unattributed"] = max(unattributed, 0.0) if consistent else unattributed
        if consistent and phases:
            data["phases_at"] = max(at - waited - after, 0.0)
            data["anchor"] = anchor

    def _anchor(
        self, reading: Any, streamed: bool, end: int
    ) -> tuple[Literal["first_content", "response_end", "engine_clock"] | None, float]:
        """The moment that both sides know: seconds since the call's start, and what it is."""
        if isinstance(reading, EnginePhases):
            return "engine_clock", self.seconds(reading.first_token)
        if streamed:
            first = self.attempt.first_content
            return ("first_content", self.seconds(first)) if first is not None else (None, 0.0)
        return "response_end", self._received(end)

    def _received(self, end: int) -> float:
        """When the last of the answer came, in seconds since the call's start."""
        last = self.attempt.last_frame
        return self.seconds(end if last is None else last)

    def _client(self, streamed: bool, issued: int, end: int) -> dict[str, float]:
        attempt = self.attempt
        started, headers, first = attempt.started, attempt.headers, attempt.first_content
        stamps = [
            ("load", started, attempt.loaded),
            ("connect", started, attempt.connected),
            ("await_headers", issued, headers),
            (
                "await_content",
                issued if headers is None else headers,
                first if streamed else attempt.last_frame,
            ),
            ("after", attempt.last_frame, end),
        ]
        if streamed:
            stamps += (
                ("receive", first, attempt.last_content),
                ("first_frame", started, attempt.first_frame),
                ("first_content", started, first),
                ("first_answer", started, attempt.first_answer),
            )
        found: dict[str, float] = {}
        for name, since, to in stamps:
            if since is not None and to is not None and to >= since:
                found[name] = (to - since) / NANOSECONDS
        return found


_PLACED = ("queue", "prefill", "decode", "time_to_first_token")
_PHASES = (*_PLACED, "server_total")


def _is_reported(phase: Any) -> bool:
    """Zero, negative or not a number is "not reported"."""
    seconds = getattr(phase, "seconds", None)
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < float("inf")
