"""Measures once, at load, what a pass costs here: the curve that draft lengths are chosen with."""

from __future__ import annotations

from time import perf_counter

from specclient_engine.cost import CostCurve
from specclient_engine.runner.base import Chunk, ModelRunner

_ROWS = (1, 2, 4, 8, 16, 32, 65)
_CONTEXT = 1024
_BUDGET = 0.5


def measure_cost(runner: ModelRunner) -> CostCurve:
    """The cost curve of `runner`, from every row count once and again for about half a second.

    The tokens are all the same: the time of a dense pass does not depend on them. The cached context is
    not computed either, only attended to.
    """
    context = min(_CONTEXT, (runner.max_context - _ROWS[-1]) // 2) if runner.can_roll_back else 0
    rows = [count for count in _ROWS if context + count <= runner.max_context] or [1]
    samples: list[tuple[int, int, float]] = []
    slot = runner.allocate(context + rows[-1])
    try:
        _seconds(runner, slot, 0, rows[0])
        plan = [(count, 0) for count in rows] + [(rows[0], context), (rows[-1], context)]
        began = perf_counter()
        while not samples or perf_counter() - began < _BUDGET:
            samples += [(count, start, _seconds(runner, slot, start, count)) for count, start in plan]
            plan = plan[: len(rows)]
    finally:
        runner.release(slot)
    return CostCurve.from_samples(samples)


def _seconds(runner: ModelRunner, slot: int, start: int, rows: int) -> float:
    began = perf_counter()
    # Reading a result back waits for the device.
    runner.forward([Chunk(slot, start, [0] * rows)]).argmax(dim=-1).tolist()
    return perf_counter() - began
