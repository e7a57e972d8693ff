"""A place in a known text: kept while the target copies, and found again after it has edited."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from specclient_engine.proposers.contexts import BEHIND_INDENT, WITHIN
from specclient_engine.proposers.vocabulary import BLANK, BREAK

CONFIRMED = 3
"""Matching tokens in a row that end a loss: from then on another mismatch is a new edit."""
COPYING = frozenset({"start", "cursor"})
LOOK_AHEAD = 4
LOOK_BACK = 2
"""How many occurrences of a token on either side of the anchor are tried when the place is lost."""
LONGEST = 24
"""Length from which two matches count as equally good."""
INSIDE, STARTS, BREAKS = 0, 1, 2
"""Where a token stands: within a line, first of its line (or first behind the token of its indent), or at a
line break itself."""
PATIENCE = 6
"""Tokens after which it no longer matters how long ago the place was lost."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A position of the known text that may come next, with what the belief in it rests on.

    `kind` is one of COPYING: "start" (nothing has contradicted the text yet), "cursor" (it is being
    copied again after an edit; `feature` is the run so far in both); or, while the place is lost,
    "resync" (the end of the output was found near the loss), "substitution" (as many tokens were
    replaced as written), "insertion" (the text goes on where it was lost), "line" (the rest of the
    line was replaced), "beginning" (the text has yet to begin, as behind a code fence).
    """

    position: int
    kind: str
    feature: int


@dataclass(frozen=True, slots=True)
class TokenEdit:
    """Known tokens [old_start, old_end) became output tokens [new_start, new_end)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class KnownText:
    """A cursor on `tokens`.

    `cursor` is the position expected next and `run` how many tokens matched in a row up to it. While
    the place is lost, `lost` counts the tokens since and `anchor` is the position that failed.
    A mismatch costs a bounded search near the anchor, so following n tokens is O(n log n) at worst.
    """

    __slots__ = ("_lost_at", "_untouched", "_where", "anchor", "cursor", "lost", "places", "run", "tokens")

    def __init__(self, tokens: Sequence[int], flags: Sequence[int]) -> None:
        """`flags[i]` are the `Vocabulary` flags of `tokens[i]`."""
        self.tokens = list(tokens)
        self.places = _places(flags)
        self.cursor = self.run = self.anchor = self.lost = 0
        self._lost_at = 0
        self._untouched = True
        self._where: dict[int, list[int]] = {}
        where = self._where
        for position, token in enumerate(self.tokens):
            places = where.get(token)
            if places is None:
                where[token] = [position]
            else:
                places.append(position)

    def follow(self, token: int, output: Sequence[int]) -> TokenEdit | None:
        """Follow one more output token (`output` ends with it); the edit that this token has settled."""
        cursor = self.cursor
        if cursor < len(self.tokens) and self.tokens[cursor] == token:
            self.cursor += 1
            self.run += 1
            if self.lost == 0:
                return None
            if self.run >= CONFIRMED:
                return self._settle(len(output))
            self.lost += 1
            return None
        self._untouched = False
        if self.lost == 0:
            self.anchor = cursor
            self._lost_at = len(output) - 1
        self.lost += 1
        self.cursor, self.run = self._find(token, output)
        return None

    def _settle(self, size: int) -> TokenEdit:
        self.lost = 0
        copied = min(self.run, self.cursor - self.anchor, size - self._lost_at)
        copied = max(copied, 0)
        old_end = max(self.anchor, self.cursor - copied)
        return TokenEdit(self.anchor, old_end, self._lost_at, max(self._lost_at, size - copied))

    def _find(self, token: int, output: Sequence[int]) -> tuple[int, int]:
        """(position after the best match of the output's end, its length): long and near wins."""
        places = self._where.get(token)
        if not places:
            return len(self.tokens), 0
        middle = bisect_left(places, self.anchor)
        best, best_score, best_length = len(self.tokens), float("-inf"), 0
        for place in places[max(0, middle - LOOK_BACK) : middle + LOOK_AHEAD]:
            length = self._match_length(place, output)
            distance = place - self.anchor
            score = 4.0 * min(length, 8) - (distance if distance >= 0 else -2.0 * distance) ** 0.5
            if score > best_score:
                best, best_score, best_length = place + 1, score, length
        return best, best_length

    def _match_length(self, place: int, output: Sequence[int]) -> int:
        tokens, last = self.tokens, len(output) - 1
        longest = min(LONGEST, place + 1, last + 1)
        length = 1
        while length < longest and tokens[place - length] == output[last - length]:
            length += 1
        return length

    def place(self, position: int, run: int) -> None:
        """Put the cursor at `position`, as if the last `run` tokens before it had been copied."""
        self.cursor = self.anchor = position
        self.run = max(run, CONFIRMED)
        self.lost = 0

    def guesses(self, place: int) -> list[Guess]:
        """Positions that may come next; `place` is where the output stands in its line (`Line.place`)."""
        if not self.lost:
            kind = "start" if self._untouched else "cursor"
            return [Guess(self.cursor, kind, self.run)] if self.cursor < len(self.tokens) else []
        size, lost = len(self.tokens), min(self.lost, PATIENCE)
        line_start = place != WITHIN
        found = []
        if self.run and self.cursor < size:
            found.append(Guess(self.cursor, "resync", self._resync_feature()))
        if self.anchor + self.lost < size:
            found.append(Guess(self.anchor + self.lost, "substitution", lost))
        if self.anchor == 0 < size:
            found.append(Guess(0, "beginning", int(line_start)))
        elif self.anchor < size:
            at_line = self.places[self.anchor] == STARTS
            position = self._abreast(self.anchor, place) if at_line and line_start else self.anchor
            found.append(Guess(position, "insertion", 4 * lost + 2 * line_start + at_line))
        if line_start:
            following = self._abreast(self._next_line(self.anchor), place)
            if following < size:
                found.append(Guess(following, "line", lost))
        return found

    def _abreast(self, position: int, place: int) -> int:
        """The start of the line that starts at `position`: before or behind its indent, as the output's."""
        places, size = self.places, len(self.places)
        if 0 < position < size and places[position - 1] == STARTS:
            position -= 1
        indented = position + 1 < size and places[position] == places[position + 1] == STARTS
        return position + 1 if indented and place == BEHIND_INDENT else position

    def _next_line(self, position: int) -> int:
        places, end = self.places, min(len(self.tokens), position + 128)
        while position < end and places[position] != BREAKS:
            position += 1
        return position + 1 if position < end else len(self.tokens)

    def _resync_feature(self) -> int:
        """Length of the match, whether it is near, whether its last token is rare: 7 x 5 x 4."""
        run = self.run
        length = run if run < 3 else 3 if run < 5 else 4 if run < 8 else 5 if run < 16 else 6
        ahead = self.cursor - self.anchor - self.lost
        near = 0 if ahead == 0 else 4 if ahead < 0 else 1 if ahead < 4 else 2 if ahead < 16 else 3
        count = len(self._where[self.tokens[self.cursor - 1]])
        rare = 0 if count < 2 else 1 if count < 4 else 2 if count < 12 else 3
        return (length * 5 + near) * 4 + rare


def _places(flags: Sequence[int]) -> list[int]:
    """For each token of a text with these flags: where it stands."""
    places = []
    place, indenting = BREAKS, False
    for flag in flags:
        if flag & BREAK:
            place = BREAKS
        elif place == BREAKS or indenting:
            place = STARTS
        else:
            place = INSIDE
        indenting = place == STARTS and not indenting and bool(flag & BLANK)
        places.append(place)
    return places
