"""How many threads compute a pass: measured at load, where there is a choice."""

from __future__ import annotations

from time import perf_counter

from .base import Chunk
from .fused_native import NativeRunner

FEWEST = 3
"""Threads from which fewer may be quicker: with two, the second core always pays."""
ROWS = (1, 16)
"""A plain pass, which waits for memory, and a short draft, which waits for arithmetic."""
REPEATS = 3
CLEARLY = 0.95
"""Share of the time of more threads below which fewer take their place."""


def choose_threads(runner: NativeRunner) -> int:
    """Sets and returns the quickest of all the threads that torch may use, a half and a quarter of them.

    Memory may be saturated long before the last core, and cores that are threads of one another add little.
    What `OMP_NUM_THREADS` or `torch.set_num_threads` allow is never exceeded. Answers do not depend on it:
    a row's sums are made in one order however its products are shared out.
    """
    most = runner.threads
    if most < FEWEST:
        return most
    slot = runner.allocate(max(ROWS))
    try:
        best, least = most, _seconds(runner, slot, most)
        for count in (most // 2, most // 4):
            seconds = _seconds(runner, slot, count) if count else float("inf")
            if seconds < CLEARLY * least:
                best, least = count, seconds
    finally:
        runner.release(slot)
    runner.threads = best
    return best


def _seconds(runner: NativeRunner, slot: int, threads: int) -> float:
    """The least time of a plain pass and a short draft, each with the same weight per row count."""
    runner.threads = threads
    total = 0.0
    for rows in ROWS:
        times = []
        for _ in range(REPEATS):
            began = perf_counter()
            runner.forward([Chunk(slot, 0, [0] * rows)])
            times.append(perf_counter() - began)
        total += min(times)
    return total
