"""Short contexts of code: what followed this token, at this indent, in lines that begin like this one.

Where the longest earlier match is only a token or two, these say more than it does. Each context keeps
its latest successor and how often that was confirmed in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import islice

from specclient_engine.proposers.vocabulary import BREAK, SPACED, WORD

SHIFT = 20
"""Bits of a token id in a key; larger ids only make contexts collide, which costs accuracy alone."""
KINDS = ("token", "indent", "shape")
ANY_WORD = -1


Successors = dict[int, list[int]]
"""By context: its latest successor, how often that was confirmed in a row, whether it ever changed."""


def note(known: Successors, context: int, token: int) -> None:
    """`token` followed `context`."""
    entry = known.get(context)
    if entry is None:
        known[context] = [token, 1, 0]
    elif entry[0] == token:
        entry[1] += 1
    elif entry[1] > 1:
        entry[1] = 1 if entry[1] < 4 else entry[1] // 2
        entry[2] = 1
    else:
        entry[0], entry[2] = token, 1


def forget_half(known: Successors) -> None:
    """Forget the contexts that were seen first."""
    for key in list(islice(known, len(known) // 2)):
        del known[key]


def settled(entry: list[int]) -> int:
    """How far a successor may be relied on: 1..10."""
    return min(entry[1], 5) * 2 - entry[2]


class Line:
    """Where the output stands in its line.

    `fourth` to `last` are the last tokens, `indent` the token of the line break before the
    line, `head` the line's first token, `length` its tokens so far. The shape is the last two tokens
    with words taken as one.
    """

    __slots__ = ("_before", "_shape", "fourth", "head", "indent", "last", "length", "second", "third")

    def __init__(self) -> None:
        self.fourth = self.third = self.second = self.last = 0
        self.indent = self.head = self.length = self._shape = self._before = 0

    def copy(self) -> Line:
        """An independent copy."""
        return copy(self)

    def push(self, token: int, flags: int) -> None:
        """Go on by one token with its `Vocabulary` flags."""
        self.fourth, self.third, self.second, self.last = self.third, self.second, self.last, token
        if not flags & WORD:
            self._before, self._shape = self._shape, token
        elif flags & SPACED or self._shape != ANY_WORD:
            self._before, self._shape = self._shape, ANY_WORD
        if flags & BREAK:
            self.indent, self.head, self.length = token, 0, 0
            return
        if self.length == 0:
            self.head = token
        self.length += 1

    def keys(self) -> tuple[int, int, int]:
        """The contexts of the next token, in the order of `KINDS`."""
        last = self.last
        shape = (self._before << SHIFT) + self._shape
        return last, (self.indent << SHIFT) + last, (shape << SHIFT) + self.head


class LineContexts:
    """Successors of the contexts seen so far."""

    __slots__ = ("_maps",)

    def __init__(self) -> None:
        self._maps: tuple[Successors, ...] = tuple({} for _ in KINDS)

    def learn(self, keys: Sequence[int], token: int) -> None:
        """`token` followed a line with these `Line.keys`."""
        for known, key in zip(self._maps, keys, strict=True):
            note(known, key, token)

    def entries(self, keys: Sequence[int]) -> list[list[int] | None]:
        """What is known of each context, in the order of `KINDS`."""
        return [known.get(key) for known, key in zip(self._maps, keys, strict=True)]

    def trim(self) -> None:
        """Forget the older half."""
        for known in self._maps:
            forget_half(known)
