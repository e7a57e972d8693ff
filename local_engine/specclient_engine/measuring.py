"""Measures once, at load, what a pass costs here: the curve that draft lengths are chosen with."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from specclient_engine.cost import CostCurve
from specclient_engine.cost_fit import fit_curve
from specclient_engine.pass_logits import PassLogits
from specclient_engine.request_state import MAX_DRAFT
from specclient_engine.runner.base import Chunk, ModelRunner

MAX_ROWS = MAX_DRAFT + 1
_ROWS = (1, 2, 4, 8, 16, 32, MAX_ROWS)
_CONTEXT = 1024
_FIRST = ((1, False), (8, False), (32, False))
_THEN = (
    *((1, False), (16, False), (8, False), (32, True), (1, True), (32, False), (4, False), (2, False)),
    *((1, False), (MAX_ROWS, False)),
)
"""(rows, with a cached context) in the order of what they tell; what decides most is timed most often."""
_BUDGET = 0.6
_PATIENCE = 2.0
"""The third of the first timings is left out where even the first two foretell more seconds than this."""

Sample = tuple[int, int, float]


def measure_cost(
    runner: ModelRunner, *, budget: float = _BUDGET, clock: Callable[[], float] = perf_counter
) -> CostCurve:
    """The cost curve of `runner`, from passes that take about `budget` seconds together.

    Where one round of all row counts takes longer, the dear ones are left to belief, and serving finds
    out. The tokens are all the same: the time of a dense pass does not depend on them. The cached context
    is not computed either, only attended to.
    """
    context = max(0, min(_CONTEXT, (runner.max_context - MAX_ROWS) // 2))
    rows = [count for count in _ROWS if context + count <= runner.max_context]
    slot = runner.allocate(context + max(rows))

    def time_pass(count: int, start: int) -> float:
        began = clock()
        PassLogits(runner, [Chunk(slot, start, [0] * count)]).finish()
        return clock() - began

    try:
        samples = _timed(runner, time_pass, rows, context, budget, clock)
    finally:
        runner.release(slot)
    return fit_curve(samples, knots=rows, dearest_context=_CONTEXT)


def _timed(
    runner: ModelRunner,
    time_pass: Callable[[int, int], float],
    rows: list[int],
    context: int,
    budget: float,
    clock: Callable[[], float],
) -> list[Sample]:
    first = [(count, 0) for count, _ in _FIRST if count in rows]
    then = [(count, context if cached else 0) for count, cached in _THEN if count in rows]
    if runner.device.type != "cpu":
        for count, start in dict.fromkeys(then):
            time_pass(count, start)  # the first pass of a shape captures its graph
    samples: list[Sample] = []
    began = clock()
    for count, start in first:
        if len(samples) < 2 or clock() - began + _foretold(samples, count, start) <= _PATIENCE:
            samples.append((count, start, time_pass(count, start)))
    while True:
        taken = len(samples)
        for count, start in then:
            if clock() - began + _foretold(samples, count, start) <= budget:
                samples.append((count, start, time_pass(count, start)))
        if len(samples) == taken:
            return samples


def _foretold(samples: list[Sample], rows: int, start: int) -> float:
    """The most that a pass should take, by those timed so far."""
    again = [seconds for count, at, seconds in samples if (count, at) == (rows, start)]
    return min(again or [seconds * max(1.0, rows / count) for count, _, seconds in samples])
