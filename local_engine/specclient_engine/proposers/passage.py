"""An earlier passage that the output repeats with changes: the pattern of what is being written.

A new function is often an old one with other names. The longest match of the output's end breaks at every
change; the passage that it came from goes on to say what follows, with the same changes made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

SHORTEST = 3
"""Repeated tokens that make a passage worth following."""
LONGER = 5
"""Repeated tokens for which a passage is left in which the place is lost."""
LONGEST = 8
"""Repeated tokens for which a passage is left in which it is not."""
AHEAD = 12
"""Tokens of the passage behind a change among which the output's next token is looked for."""
PATIENCE = 24
"""Tokens after a change within which the passage must be found again."""
FOUND = 2
"""Tokens in a row that end a change."""
LONGEST_CHANGE = 4
"""Tokens of a replacement that is expected to be made again."""
NOWHERE = -1


class Passage:
    """A place in `text`, whose end is the output itself. A token costs a bounded amount of work.

    `_position` is the token expected next and `_run` how many came true in a row up to it. While the place
    is lost, `_lost` counts the tokens since, `_anchor` is the position that failed and `_written` what was
    written since then. `_changes` maps tokens of the passage to those written in their place.
    """

    __slots__ = ("_anchor", "_changes", "_lost", "_position", "_run", "_text", "_written")

    def __init__(self, text: Sequence[int]) -> None:
        self._text = text
        self._position = self._anchor = NOWHERE
        self._run = self._lost = 0
        self._changes: dict[int, int] = {}
        self._written: list[int] = []

    def leave(self) -> None:
        """Follow nothing."""
        self._position, self._lost = NOWHERE, 0

    def copy(self) -> Passage:
        """An independent copy, to follow a draft."""
        other = copy(self)
        if self._lost or self._changes:
            other._changes, other._written = dict(self._changes), list(self._written)
        else:
            other._changes, other._written = {}, []
        return other

    def begin(self, position: int, length: int) -> None:
        """The output has just repeated the `length` tokens before `position`; is that a better passage?"""
        if self._lost:
            better = length >= LONGER and self._run < FOUND
        elif self._position >= 0:
            better = length >= LONGEST and length > self._run and position != self._position
        else:
            better = length >= SHORTEST
        if better:
            self._position, self._run, self._lost = position, length, 0
            self._changes = {}

    def guesses(self) -> Iterator[tuple[int, tuple[str, int]]]:
        """Tokens that may come next, with their keys."""
        position = self._position
        if not self._lost:
            token = self._expected(position)
            if token >= 0:
                kind = "passage" if token == self._text[position] else "passage changed"
                yield token, (kind, min(self._run, 8))
            return
        token = self._expected(position)
        if token >= 0:
            yield token, ("passage again", self._run)
        if self._lost <= 3:
            token = self._expected(self._anchor + self._lost)
            if token >= 0:
                yield token, ("passage replaced", self._lost)

    def _expected(self, position: int) -> int:
        """The token of the passage at `position`, changed as before; negative where there is none."""
        if 0 <= position < len(self._text):
            token = self._text[position]
            return self._changes.get(token, token)
        return NOWHERE

    def follow(self, token: int) -> None:
        """The output goes on with `token`."""
        position = self._position
        if position < 0 and not self._lost:
            return
        expected = self._expected(position)
        if expected >= 0 and token in (expected, self._text[position]):
            self._position += 1
            self._run += 1
            if self._lost:
                self._lost += 1
                self._written.append(token)
                if self._run >= FOUND:
                    self._settle()
            return
        if not self._lost:
            self._anchor, self._written = position, []
        self._lost += 1
        self._run = 0
        self._written.append(token)
        if self._lost > PATIENCE:
            self.leave()
        else:
            self._look_for(token)

    def _look_for(self, token: int) -> None:
        self._position = NOWHERE
        block = self._text[self._anchor : self._anchor + AHEAD]
        changes = self._changes
        for ahead, old in enumerate(block):
            if changes.get(old, old) == token:
                self._position, self._run = self._anchor + ahead + 1, 1
                return

    def _settle(self) -> None:
        """The change is over: a replacement of a few tokens by as many is learnt."""
        old = self._text[self._anchor : max(self._anchor, self._position - self._run)]
        new = self._written[: len(self._written) - self._run]
        if len(old) == len(new) <= LONGEST_CHANGE:
            self._changes.update(zip(old, new, strict=True))
        self._lost = 0
