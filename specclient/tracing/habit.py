"""Says when a prediction fits far worse than this workload's predictions usually do.

A sudden drop is a cheap sign that the known text and the output have drifted apart, or that the endpoint
treats it differently from yesterday. The habit is an exponentially weighted mean and variance of the
acceptance rate per (target, model, workload), kept in this process only.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.trace import Span

if TYPE_CHECKING:
    from specclient.core.timeline import Timeline
    from specclient.report import Report
    from specclient.tracing.facts import CallStart

EVENT = "specclient.acceptance_drop"
WEIGHT = 0.1
"""Of the newest observation: about the last twenty calls count."""

WARM_UP = 8
"""Calls before a habit is one."""

Key = tuple[str, str | None, str | None]


@dataclass(slots=True)
class _Habit:
    mean: float
    variance: float = 0.0
    seen: int = 1


class Habits:
    """The acceptance habits of at most `limit` workloads; the one unused for longest is forgotten."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._known: OrderedDict[Key, _Habit] = OrderedDict()
        self._lock = threading.RLock()  # the end of a dropped call may come at any allocation

    def observe(self, key: Key, rate: float) -> float | None:
        """Learn one acceptance rate; the habitual rate if this one fell far below it, else None.

        Far below is under half the mean and more than three standard deviations away.
        """
        with self._lock:
            habit = self._known.get(key)
            if habit is None:
                self._known[key] = _Habit(rate)
                if len(self._known) > self._limit:
                    self._known.popitem(last=False)
                return None
            self._known.move_to_end(key)
            usual = habit.mean
            strange = (
                habit.seen >= WARM_UP and rate < usual / 2 and usual - rate > 3 * math.sqrt(habit.variance)
            )
            step = rate - habit.mean
            habit.mean += WEIGHT * step
            habit.variance = (1 - WEIGHT) * (habit.variance + WEIGHT * step * step)
            habit.seen += 1
            return usual if strange else None

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


HABITS = Habits()


def note(span: Span, report: Report, start: CallStart, timeline: Timeline) -> None:
    """Learn this call's acceptance rate, and put an event on its span if it is far below the habit."""
    rate = report.prediction.acceptance_rate
    if rate is None:
        return
    usual = HABITS.observe((report.target, report.model, start.workload), rate)
    if usual is not None:
        attributes = {"specclient.prediction.acceptance_rate": rate, "specclient.acceptance.usual": usual}
        span.add_event(EVENT, attributes, timestamp=timeline.at(timeline.ended or timeline.started))
