"""A place in a known text that is kept, lost and found again while the target writes its own version."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

CONFIRMED = 3
"""Matching tokens in a row after which losing the place again moves the anchor."""
LOOK_AHEAD = 4
LOOK_BACK = 2
LONGEST = 24


class KnownText:
    """A cursor on `tokens`: where the output stands in the known text.

    `cursor` is the position expected next and `run` how many tokens in a row matched up to it; while
    the place is lost (`run` 0), `anchor` is where it was lost and `lost` how many tokens ago.
    """

    __slots__ = ("_where", "anchor", "cursor", "lost", "run", "tokens")

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self.cursor = 0
        self.run = 0
        self.anchor = 0
        self.lost = 0
        self._where: dict[int, list[int]] = {}
        for position, token in enumerate(self.tokens):
            self._where.setdefault(token, []).append(position)

    def advance(self, token: int, output: Sequence[int]) -> None:
        """Follow one more token of the output (`output` ends with it)."""
        if self.cursor < len(self.tokens) and self.tokens[self.cursor] == token:
            self.cursor += 1
            self.run += 1
            if self.run >= CONFIRMED:
                self.lost = 0
            else:
                self.lost += self.lost > 0
            return
        if self.lost == 0:
            self.anchor = self.cursor
        self.lost += 1
        self.cursor, self.run = self._find(token, output)

    def _find(self, token: int, output: Sequence[int]) -> tuple[int, int]:
        """(position after the best match of the output's end, its length) nearest the anchor."""
        places = self._where.get(token)
        if not places:
            return len(self.tokens), 0
        middle = bisect_left(places, self.anchor)
        best, best_score, best_length = len(self.tokens), -1e9, 0
        for index in range(max(0, middle - LOOK_BACK), min(len(places), middle + LOOK_AHEAD)):
            place = places[index]
            length = self._match_length(place, output)
            distance = place - self.anchor
            score = 4.0 * min(length, 8) - (distance if distance >= 0 else -2.0 * distance) ** 0.5
            if score > best_score:
                best, best_score, best_length = place + 1, score, length
        return best, best_length

    def _match_length(self, place: int, output: Sequence[int]) -> int:
        """How many tokens up to `place` equal the end of the output, at most LONGEST."""
        tokens, size = self.tokens, len(output)
        longest = min(LONGEST, place + 1, size)
        length = 0
        while length < longest and tokens[place - length] == output[size - 1 - length]:
            length += 1
        return length
