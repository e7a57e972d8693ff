"""Short contexts of code: what followed this word, at this indent, in lines that begin like this one.

Where the longest earlier match is only a token or two, these say more than it does. Each context keeps
its latest successor, how often that was confirmed in a row, and the one that came between.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import islice

from specclient_engine.proposers.vocabulary import BLANK, BREAK, FACTOR, MASK, OPEN, SPACED, WORD, Stretch

KINDS = ("word", "indent", "shape")
SECONDS = tuple(f"{kind} second" for kind in KINDS)
ANY_WORD = -1
NOTHING = -1
WITHIN, BEFORE_INDENT, BEHIND_INDENT = 0, 1, 2
"""Where the output stands: within a line, or at its start with the indent to come or written. Some tokenizers
put a line break and the next line's indent in one token, others in two."""

Successors = dict[int, int]
"""By context, one number: its latest successor, what else followed last plus one (0: nothing so far), and how
often the latest was confirmed in a row. Keys and numbers have 60 bits at most as a rule: 32 bytes each."""
BITS = 24
"""Bits of a successor: token ids stay below 16,777,216."""
TOKEN = (1 << BITS) - 1
ONCE = 1 << 2 * BITS


def note(known: Successors, context: int, token: int) -> None:
    """`token` followed `context`."""
    entry = known.get(context)
    if entry is None:
        known[context] = ONCE | token
        return
    before = entry & TOKEN
    if before == token:
        known[context] = entry + ONCE
    elif entry >= 2 * ONCE:
        count = entry >> 2 * BITS
        count = 1 if count < 4 else count // 2
        known[context] = count << 2 * BITS | (token + 1) << BITS | before
    else:
        known[context] = ONCE | (before + 1) << BITS | token


def latest(entry: int) -> int:
    """The latest successor."""
    return entry & TOKEN


def between(entry: int) -> int:
    """What else followed last; `NOTHING` so far."""
    return (entry >> BITS & TOKEN) - 1


def settled(entry: int) -> int:
    """How far a successor may be relied on, 1..10: it was confirmed in a row, and never changed."""
    rank = 2 * (entry >> 2 * BITS) if entry < 5 * ONCE else 10
    return rank - 1 if entry >> BITS & TOKEN else rank


def forget_half(known: Successors) -> Successors:
    """The half that is kept: what came only once goes first, but for the newest quarter; then the oldest.

    A new dict, as one with gaps would take twice the room before it used them.
    """
    half = len(known) // 2
    older = islice(known.items(), half + half // 2)
    once = [key for key, entry in older if entry <= ONCE | TOKEN]
    for key in once[:half]:
        del known[key]
    for key in list(islice(known, half - len(once[:half]))):
        del known[key]
    return dict(known)


class Line:
    """Where the output stands in its line.

    `fourth` to `last` are the last tokens, `indent` the token that holds the line's indent (0 for none;
    at `BEFORE_INDENT` still that of the line before), `head` the line's first token behind it, `place`
    one of `WITHIN` and its kin. The shape is the last two tokens with words taken as one. The word is the
    last name, as far as it is written, and what is written behind it, by characters.
    """

    __slots__ = (
        "_before",
        "_behind",
        "_shape",
        "_word",
        "fourth",
        "head",
        "indent",
        "last",
        "place",
        "second",
        "third",
    )

    def __init__(self) -> None:
        self.fourth = self.third = self.second = self.last = 0
        self.indent = self.head = self._shape = self._before = self._word = self._behind = 0
        self.place = BEFORE_INDENT

    def copy(self) -> Line:
        """An independent copy."""
        return copy(self)

    def push(self, token: int, flags: int, stretches: Sequence[Stretch] = ()) -> None:
        """Go on by one token with its `Vocabulary` flags and stretches."""
        self.fourth, self.third, self.second, self.last = self.third, self.second, self.last, token
        if not flags & WORD:
            self._before, self._shape = self._shape, token
        elif flags & SPACED or self._shape != ANY_WORD:
            self._before, self._shape = self._shape, ANY_WORD
        for is_word, factor, term in stretches:
            if not is_word:
                self._behind = (self._behind * factor + term) & MASK
            elif self._behind:
                self._word, self._behind = term, 0
            else:
                self._word = (self._word * factor + term) & MASK
        if flags & BREAK:
            self.head = 0
            if flags & OPEN:
                self.place = BEFORE_INDENT
            else:
                self.indent, self.place = token, BEHIND_INDENT
        elif self.place == BEFORE_INDENT:
            self._begin(token, flags)
        elif self.place == BEHIND_INDENT:
            self.head, self.place = token, WITHIN

    def _begin(self, token: int, flags: int) -> None:
        if flags & BLANK:
            self.indent, self.place = token, BEHIND_INDENT
        else:
            self.indent, self.head, self.place = 0, token, WITHIN

    def keys(self) -> tuple[int, int, int]:
        """The contexts of the next token, in the order of `KINDS`."""
        word = (self._word * FACTOR + self._behind) & MASK
        shape = self._before * FACTOR + self._shape
        return word, self.indent * FACTOR + self.last, shape * FACTOR + self.head


class LineContexts:
    """Successors of the contexts seen so far."""

    __slots__ = ("_maps",)

    def __init__(self) -> None:
        self._maps: tuple[Successors, ...] = tuple({} for _ in KINDS)

    def learn(self, keys: Sequence[int], token: int) -> None:
        """`token` followed a line with these `Line.keys`."""
        for known, key in zip(self._maps, keys, strict=True):
            note(known, key, token)

    def entries(self, keys: Sequence[int]) -> list[int | None]:
        """What is known of each context, in the order of `KINDS`."""
        return [known.get(key) for known, key in zip(self._maps, keys, strict=True)]
