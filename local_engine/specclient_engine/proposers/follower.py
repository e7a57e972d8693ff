"""A known text followed by tokens, and by characters where tokens disagree."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from specclient_engine.api import Tokenizer
from specclient_engine.proposers.known_text import KnownText, TokenEdit
from specclient_engine.proposers.rewriting import Rewrites, Rule, Span
from specclient_engine.proposers.vocabulary import Vocabulary

WINDOW = 1600
"""Characters of the known text that are rewritten or tokenised anew at a time."""
SETTLING = 3
"""Last tokens of a window that are left out: more text could change their boundaries."""
RENEW = 64
"""Tokens left in a window when the next one is made."""
LONGEST_EDIT = 400
"""Characters or tokens of an edit beyond which no rule is looked for in it."""
FORESIGHT = 16_000
"""Characters ahead in which a rule must find its text to be worth keeping."""
DRIFT = 16
"""Tokens in a row that a window must match, and the whole text miss, to move the whole text's cursor."""


@dataclass(slots=True)
class Pointer:
    """A place in a stream of tokens that may come next; `rules[i]` wrote `tokens[i]` (None: copied)."""

    tokens: list[int]
    places: list[int]
    position: int
    kind: str
    feature: int
    rules: Sequence[Rule | None] = ()

    def rule(self) -> Rule | None:
        """The rule that the token at `position` is due to."""
        return self.rules[self.position] if self.position < len(self.rules) else None


@dataclass(slots=True)
class Window:
    """A stretch of the known text as the rules would have it, from source character `start` on.

    For each token: the source character where it ends, and the rule that it is due to.
    """

    stream: KnownText
    start: int
    ends: list[int]
    rules: list[Rule | None]
    last_rule: int

    def source(self, position: int) -> int:
        """The source character at which token `position` begins."""
        return self.ends[position - 1] if position else self.start


class TextFollower:
    """Follows one predicted text.

    The text is tokenised once as a whole. When an edit teaches a rule, or the target splits the same
    characters into other tokens, the next `WINDOW` characters are written and tokenised anew beside it:
    a bounded amount of work for an edit, and linear work in all.
    """

    def __init__(self, text: str, tokenizer: Tokenizer, vocabulary: Vocabulary, end: int | None) -> None:
        """`end` is the token expected after the text, if any."""
        ids, offsets = tokenizer.encode_with_offsets(text)
        self._text = text
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._end = [] if end is None else [end]
        self._starts = [start for start, _ in offsets]
        self._starts += [len(text)] * (1 + len(self._end))
        self._rewrites = Rewrites()
        self._window: Window | None = None
        self._look_from = 0
        self.known = self._stream([*ids, *self._end])

    @property
    def tokens(self) -> int:
        """How many tokens the text has, without the end token that is expected after it."""
        return len(self.known.tokens) - len(self._end)

    def _stream(self, ids: Sequence[int]) -> KnownText:
        return KnownText(ids, [self._vocabulary.flags(token) for token in ids])

    def pointers(self, place: int) -> list[Pointer]:
        """Where the text stands; `place` is where the output stands in its line (`Line.place`)."""
        known = self.known
        found = [
            Pointer(known.tokens, known.places, guess.position, guess.kind, guess.feature)
            for guess in known.guesses(place)
        ]
        window = self._window
        if window is not None and not window.stream.lost:
            stream = window.stream
            if known.lost or stream.cursor <= window.last_rule:
                found.append(
                    Pointer(stream.tokens, stream.places, stream.cursor, "cursor", stream.run, window.rules)
                )
        return found

    def follow(self, token: int, output: Sequence[int]) -> None:
        """Follow one more output token (`output` ends with it)."""
        known = self.known
        held, run = known.lost == 0, known.run
        edit = known.follow(token, output)
        if self._window is not None:
            self._follow_window(self._window, token, output)
        if held and known.lost and (self._window is None or self._window.stream.lost):
            self._rejoin(self._starts[known.anchor], token, run)
        learnt = edit is not None and self._learn(edit, output)
        if not self._rewrites.rules or known.lost:
            return
        start = self._starts[known.cursor]
        astray = self._window is None or self._window.stream.lost > 0
        if learnt or (astray and (edit is not None or start >= self._look_from)):
            self._open_window(start, known.run, needed=False)

    def _follow_window(self, window: Window, token: int, output: Sequence[int]) -> None:
        stream = window.stream
        cursor, held, run = stream.cursor, stream.lost == 0, stream.run
        stream.follow(token, output)
        if not held or cursor >= len(window.ends):
            return
        rule = window.rules[cursor]
        if stream.lost:
            if rule is None:
                self._rejoin(window.source(cursor), token, run)
            elif self._rewrites.record(rule, hit=False, source_held=not self.known.lost):
                self._window = None
            return
        if rule is not None and (cursor + 1 == len(window.rules) or window.rules[cursor + 1] is not rule):
            self._rewrites.record(rule, hit=True)
        if self.known.lost >= DRIFT <= stream.run:
            self.known.place(bisect_left(self._starts, window.ends[cursor]), stream.run)
        if window.ends[-1] < len(self._text) and len(stream.tokens) - stream.cursor < RENEW:
            self._open_window(window.ends[cursor], stream.run, needed=self.known.lost > 0)

    def _rejoin(self, start: int, token: int, run: int) -> None:
        """If `token` writes the characters at `start` in other tokens, go on by characters after it."""
        try:
            written = self._tokenizer.token_bytes(token).decode()
        except UnicodeDecodeError:
            return
        if written and self._text.startswith(written, start):
            self._open_window(start + len(written), run)

    def _learn(self, edit: TokenEdit, output: Sequence[int]) -> bool:
        start, end = self._starts[edit.old_start], self._starts[edit.old_end]
        if max(end - start, edit.new_end - edit.new_start) > LONGEST_EDIT:
            return False
        written = self._tokenizer.decode(output[edit.new_start : edit.new_end])
        before = self._text[max(0, start - LONGEST_EDIT) : start]
        return self._rewrites.learn(before, self._text[start:end], written, self._text[end : end + FORESIGHT])

    def _open_window(self, start: int, run: int, *, needed: bool = True) -> None:
        """Write and tokenise the text from character `start` on, as the rules have it.

        `run` tokens have been copied so far. Where rewriting would change nothing and is not `needed`,
        the rules wait for later text.
        """
        stop = start + WINDOW
        at_line_start = start > 0 and self._text[start - 1] == "\n"
        text, spans = self._rewrites.apply(self._text[start:stop], at_line_start=at_line_start)
        self._look_from = stop
        if not spans and not needed:
            self._window = None
            return
        ids, offsets = self._tokenizer.encode_with_offsets(text)
        ends, rules = _map_back(offsets, spans, start)
        if stop < len(self._text):
            kept = max(0, len(ids) - SETTLING)
            ids, ends, rules = ids[:kept], ends[:kept], rules[:kept]
        else:
            ids = [*ids, *self._end]
        last_rule = max((index for index, rule in enumerate(rules) if rule is not None), default=-1)
        stream = self._stream(ids)
        stream.place(0, run)
        self._window = Window(stream, start, ends, rules, last_rule) if ends else None


def _map_back(
    offsets: Sequence[tuple[int, int]], spans: Sequence[Span], origin: int
) -> tuple[list[int], list[Rule | None]]:
    """For each token of a rewritten text: the source character where it ends, and the rule it is due to."""
    starts = [span.start for span in spans]
    ends: list[int] = []
    rules: list[Rule | None] = []
    for start, end in offsets:
        index = bisect_right(starts, max(start, end - 1)) - 1
        span = spans[index] if index >= 0 else None
        if span is None:
            ends.append(origin + end)
            rules.append(None)
        else:
            ends.append(origin + span.old_end + max(0, end - span.end))
            rules.append(span.rule if start < max(span.end, span.start + 1) and end > span.start else None)
    return ends, rules
