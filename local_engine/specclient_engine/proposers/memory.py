"""What followed a few tokens in earlier requests of the same engine, under the same cache salt.

A new function is rarely the first of its kind: names, idioms and whole lines come back from request to
request. This is the cross-request side of SuffixDecoding (arXiv 2411.04975) with short contexts in place
of its tree. It changes what is drafted, never what is answered, and lives in the process only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specclient_engine.proposers.contexts import Line, Successors, forget_half, latest, note, settled
from specclient_engine.proposers.vocabulary import FACTOR, MASK

MOST = 40_000
"""Contexts of each kind at which half of them go: the six kinds together hold less than 25 MB."""
SALTS = 256
"""Cache salts whose memories are kept at most, beside that of the last request."""
RUNS = ("memory of four", "memory of three", "memory of two")
LINES = ("memory of word", "memory of indent", "memory of shape")


class Memory:
    """Successors of the last four, three and two tokens, and of the contexts of a line. Not thread-safe."""

    __slots__ = ("_lines", "_room", "_runs")

    def __init__(self) -> None:
        self._runs: list[Successors] = [{} for _ in RUNS]
        self._lines: list[Successors] = [{} for _ in LINES]
        self._room = MOST

    @property
    def size(self) -> int:
        """Contexts of the kind that has most of them."""
        return max(len(known) for known in (*self._runs, *self._lines))

    def learn(self, line: Line, keys: Sequence[int], token: int) -> None:
        """`token` followed `line`, whose `Line.keys` are `keys`."""
        for known, key in zip(self._runs, _run_keys(line), strict=True):
            note(known, key, token)
        for known, key in zip(self._lines, keys, strict=True):
            note(known, key, token)
        self._room -= 1
        if not self._room:
            self._make_room()

    def _make_room(self) -> None:
        """Forget half of each kind that is full.

        A token adds one context to each at most, so that none is full before as many more are learnt as the
        longest has places left.
        """
        for kinds in (self._runs, self._lines):
            kinds[:] = [known if len(known) < MOST else forget_half(known) for known in kinds]
        self._room = MOST - self.size

    def votes(
        self, line: Line, keys: Sequence[int], known: Sequence[int | None]
    ) -> Iterator[tuple[int, tuple[str, int]]]:
        """Guesses with their keys: after the longest run that is remembered, and for the contexts of the
        line of which the request itself has `known` nothing."""
        for name, run, key in zip(RUNS, self._runs, _run_keys(line), strict=True):
            entry = run.get(key)
            if entry is not None:
                yield latest(entry), (name, settled(entry))
                break
        for name, here, kind, key in zip(LINES, known, self._lines, keys, strict=True):
            entry = kind.get(key) if here is None else None
            if entry is not None:
                yield latest(entry), (name, settled(entry))


class Memories:
    """A `Memory` for each cache salt: what was written under one is drafted under no other.

    Otherwise a user could tell by timing, and by what is accepted, which words another's requests had. Salts
    come and go: beside the memory in use those used last are kept, `SALTS` of them and `MOST` contexts of a
    kind together at most. Not thread-safe.
    """

    __slots__ = ("_by_salt",)

    def __init__(self) -> None:
        self._by_salt: dict[str | None, Memory] = {}

    def of(self, salt: str | None) -> Memory:
        """What is remembered under `salt`, nothing at first."""
        memory = self._by_salt.pop(salt, None)
        if memory is None:
            memory = Memory()
        self._make_room()
        self._by_salt[salt] = memory
        return memory

    def _make_room(self) -> None:
        """Forget those that were used longest ago. A request that runs goes on with the one it has."""
        room = MOST
        for place, (salt, memory) in enumerate(reversed(list(self._by_salt.items()))):
            room -= memory.size
            if room < 0 or place >= SALTS:
                del self._by_salt[salt]


def _run_keys(line: Line) -> tuple[int, int, int]:
    two = line.second * FACTOR + line.last
    three = line.third * FACTOR**2 + two
    return (line.fourth * FACTOR**3 + three) & MASK, three, two
