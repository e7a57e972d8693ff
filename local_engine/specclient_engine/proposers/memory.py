"""What followed a few tokens in earlier requests of the same engine.

A new function is rarely the first of its kind: names, idioms and whole lines come back from request to
request. This is the cross-request side of SuffixDecoding (arXiv 2411.04975) with short contexts in place
of its tree. It changes what is drafted, never what is answered, and lives in the process only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specclient_engine.proposers.contexts import (
    SHIFT,
    Line,
    LineContexts,
    Successors,
    forget_half,
    note,
    settled,
)

MOST = 1 << 16
"""Contexts of four tokens that are kept; beyond that the older half of all contexts goes."""
RUNS = ("memory of four", "memory of three", "memory of two")
LINES = ("memory of word", "memory of indent", "memory of shape")


class Memory:
    """Successors of the last four, three and two tokens, and of the contexts of a line. Not thread-safe."""

    __slots__ = ("_lines", "_runs")

    def __init__(self) -> None:
        self._runs: tuple[Successors, ...] = tuple({} for _ in RUNS)
        self._lines = LineContexts()

    def learn(self, line: Line, keys: Sequence[int], token: int) -> None:
        """`token` followed `line`, whose `Line.keys` are `keys`."""
        for known, key in zip(self._runs, _run_keys(line), strict=True):
            note(known, key, token)
        self._lines.learn(keys, token)
        if len(self._runs[0]) > MOST:
            self._lines.trim()
            for known in self._runs:
                forget_half(known)

    def votes(
        self, line: Line, keys: Sequence[int], known: Sequence[list[int] | None]
    ) -> Iterator[tuple[int, tuple[str, int]]]:
        """Guesses with their keys: after the longest run that is remembered, and for the contexts of the
        line of which the request itself has `known` nothing."""
        for name, run, key in zip(RUNS, self._runs, _run_keys(line), strict=True):
            entry = run.get(key)
            if entry is not None:
                yield entry[0], (name, settled(entry))
                break
        for name, here, entry in zip(LINES, known, self._lines.entries(keys), strict=True):
            if here is None and entry is not None:
                yield entry[0], (name, settled(entry))


def _run_keys(line: Line) -> tuple[int, int, int]:
    two = (line.second << SHIFT) + line.last
    three = (line.third << 2 * SHIFT) + two
    return (line.fourth << 3 * SHIFT) + three, three, two
