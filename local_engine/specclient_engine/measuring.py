"""Measures once, at load, what a pass costs here: the curve that draft lengths are chosen with."""

from __future__ import annotations

from time import perf_counter

from specclient_engine.cost import CostCurve
from specclient_engine.request_state import MAX_DRAFT
from specclient_engine.runner.base import Chunk, ModelRunner

MAX_ROWS = MAX_DRAFT + 1
_ROWS = (1, 8, 32, 16, 4, 2, MAX_ROWS)
"""In the order of what they tell, for where patience ends early: the most rows take the longest."""
_CONTEXT = 1024
_BUDGET = 0.5
_PATIENCE = 3.0
"""A model so slow that one round takes longer is measured no further; serving refines its curve."""


def measure_cost(runner: ModelRunner, *, budget: float = _BUDGET) -> CostCurve:
    """The cost curve of `runner`, from every row count once and again for about `budget` seconds.

    The least of each counts: noise only ever adds. The tokens are all the same: the time of a dense pass
    does not depend on them. The cached context is not computed either, only attended to.
    """
    context = max(0, min(_CONTEXT, (runner.max_context - MAX_ROWS) // 2))
    rows = [count for count in _ROWS if context + count <= runner.max_context]
    plan = [(count, 0) for count in rows]
    if context > 0:
        # One row and many, but not the most: the attention's share is as plain there, and sooner.
        plan += [(rows[0], context), (sorted(rows)[max(0, len(rows) - 2)], context)]
    samples: list[tuple[int, int, float]] = []
    slot = runner.allocate(context + max(rows))
    try:
        _seconds(runner, slot, 0, rows[0])
        began = perf_counter()
        for count, start in plan:
            samples.append((count, start, _seconds(runner, slot, start, count)))
            if perf_counter() - began > _PATIENCE:
                break
        while perf_counter() - began < budget:
            samples += [(count, start, _seconds(runner, slot, start, count)) for count, start in plan]
    finally:
        runner.release(slot)
    return CostCurve.from_samples(samples)


def _seconds(runner: ModelRunner, slot: int, start: int, rows: int) -> float:
    began = perf_counter()
    # Reading one number back waits for the device; more would be measured along.
    runner.forward([Chunk(slot, start, [0] * rows)])[-1, -1].item()
    return perf_counter() - began
