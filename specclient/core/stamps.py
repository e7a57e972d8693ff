"""Moments of one try on a monotonic clock: the client's, and the embedded engine's."""

from __future__ import annotations

from dataclasses import dataclass

from specclient.report import Phase

NANOSECONDS = 1_000_000_000


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
