"""Measures at load what a pass costs here: the curve that draft lengths are chosen with."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter

from specclient_engine.cost import CostCurve
from specclient_engine.cost_fit import fit_curve, least_of
from specclient_engine.pass_logits import PassLogits
from specclient_engine.request_state import MAX_DRAFT
from specclient_engine.runner.base import Chunk, ModelRunner
from specclient_engine.timings import KeptTimings, Sample

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
_ALIKE = 1.25
"""How far the ratios of two machines' timings may lie apart where they are taken for the same machine."""
_MORE = 1 / 6
"""Share of the budget for taking some kept timings again that were confirmed: one from a busy moment is not
believed for ever."""


def measure_cost(
    runner: ModelRunner,
    *,
    kept: KeptTimings | None = None,
    budget: float = _BUDGET,
    clock: Callable[[], float] = perf_counter,
) -> CostCurve:
    """The cost curve of `runner`, from passes that take about `budget` seconds together.

    Where one round of all row counts takes longer, the dear ones are left to belief, and serving finds
    out. The tokens are all the same: the time of a dense pass does not depend on them. The cached context
    is not computed either, only attended to.

    Where a few passes confirm what an earlier process `kept`, the others come from it, at the pace of now.
    """
    context = max(0, min(_CONTEXT, (runner.max_context - MAX_ROWS) // 2))
    rows = [count for count in _ROWS if context + count <= runner.max_context]
    slot = runner.allocate(context + max(rows))

    def time_pass(count: int, start: int) -> float:
        began = clock()
        PassLogits(runner, [Chunk(slot, start, [0] * count)]).finish()
        return clock() - began

    known = kept.read() if kept is not None else []
    try:
        samples = _timed(runner, time_pass, rows, context, budget, clock, known)
    finally:
        runner.release(slot)
    if kept is not None:
        kept.write((*at, seconds) for at, seconds in least_of(samples).items())
    return fit_curve(samples, knots=rows, dearest_context=_CONTEXT)


def _timed(
    runner: ModelRunner,
    time_pass: Callable[[int, int], float],
    rows: list[int],
    context: int,
    budget: float,
    clock: Callable[[], float],
    known: Sequence[Sample],
) -> list[Sample]:
    first = [(count, 0) for count, _ in _FIRST if count in rows]
    then = [(count, context if cached else 0) for count, cached in _THEN if count in rows]
    if runner.device.type != "cpu":
        for count, start in dict.fromkeys(then):
            time_pass(count, start)  # the first pass of a shape captures its graph
    samples: list[Sample] = []
    began = clock()

    def take(passes: Iterable[tuple[int, int]], until: float) -> bool:
        """Times those of `passes` that should be over `until` seconds have gone by; whether any were."""
        before = len(samples)
        for count, start in passes:
            if clock() - began + _foretold(samples, count, start) <= until:
                samples.append((count, start, time_pass(count, start)))
        return len(samples) > before

    for count, start in first:
        if len(samples) < 2 or clock() - began + _foretold(samples, count, start) <= _PATIENCE:
            samples.append((count, start, time_pass(count, start)))
    if known and not _at_todays_pace(known, samples):
        take(first, budget)  # the first passes of a process are slow ones
    if told := _at_todays_pace(known, samples):
        samples += told
        again = list(least_of(told))
        random.Random().shuffle(again)
        take([at for at in then if at not in again], budget)
        take(again, clock() - began + budget * _MORE)
        return samples
    while take(then, budget):
        pass
    return samples + _at_todays_pace(known, samples)


def _at_todays_pace(known: Sequence[Sample], samples: Sequence[Sample]) -> list[Sample]:
    """The known timings as slow as the machine is now; none where `samples` tell of another machine.

    How the costs compare is what draft lengths depend on: all may be slower at once, in a busy moment.
    """
    now, then = least_of(samples), least_of(known)
    ratios = [now[at] / then[at] for at in now if at in then]
    if not ratios or max(ratios) > _ALIKE * min(ratios):
        return []
    return [(*at, seconds * min(ratios)) for at, seconds in then.items()]


def _foretold(samples: list[Sample], rows: int, start: int) -> float:
    """The most that a pass should take, by those timed so far."""
    again = [seconds for count, at, seconds in samples if (count, at) == (rows, start)]
    return min(again or [seconds * max(1.0, rows / count) for count, _, seconds in samples])
