"""What followed two or three tokens in earlier requests of the same engine.

A new function is rarely the first of its kind: names, idioms and whole lines come back from request to
request. This is the cross-request side of SuffixDecoding (arXiv 2411.04975) with short contexts in place
of its tree. It changes what is drafted, never what is answered, and lives in the process only.
"""

from __future__ import annotations

from itertools import islice

from specclient_engine.proposers.contexts import SHIFT, Line, Successors, note, settled

MOST = 1 << 16
"""Contexts of each length that are kept; beyond that the oldest half goes."""


class Memory:
    """Successors of the last three and the last two tokens. Not thread-safe."""

    __slots__ = ("_after_three", "_after_two")

    def __init__(self) -> None:
        self._after_three: Successors = {}
        self._after_two: Successors = {}

    def learn(self, line: Line, token: int) -> None:
        """`token` followed `line`."""
        two = (line.second << SHIFT) + line.last
        note(self._after_two, two, token)
        note(self._after_three, (line.third << 2 * SHIFT) + two, token)
        if len(self._after_three) > MOST:
            for kept in (self._after_two, self._after_three):
                for key in list(islice(kept, len(kept) // 2)):
                    del kept[key]

    def guess(self, line: Line) -> tuple[int, str, int] | None:
        """(token, kind, how settled it is: 1..10) after the last three tokens, else after the last two."""
        two = (line.second << SHIFT) + line.last
        entry = self._after_three.get((line.third << 2 * SHIFT) + two)
        if entry is not None:
            return entry[0], "memory of three", settled(entry)
        entry = self._after_two.get(two)
        return None if entry is None else (entry[0], "memory of two", settled(entry))
