"""Drafting rules of other systems, re-implemented from their published descriptions for `replay.py`.

Each rule sees what a proposer sees (prompt ids, the predicted text's ids, the output so far) and always
drafts as many tokens as its system would: none of them knows what a pass costs. Indexes replace their
linear searches; the drafts are the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from specclient_engine.api import Draft


def _certain(tokens: Sequence[int], source: str) -> Draft:
    return Draft(tuple(tokens), (source,) * len(tokens), (1.0,) * len(tokens))


class NgramLookup:
    """Copy what followed an earlier occurrence of the longest matching n-gram, longest n first.

    `first`: the earliest occurrence (transformers' prompt lookup, prompt-lookup-decoding, vLLM's n-gram
    proposer), else the most recent one (llama.cpp's ngram-simple and its kin).
    """

    def __init__(
        self, prompt: Sequence[int], *, longest: int, shortest: int, draft: int, first: bool
    ) -> None:
        self._text: list[int] = []
        self._sizes = range(longest, shortest - 1, -1)
        self._draft = draft
        self._first = first
        self._ends: dict[tuple[int, ...], int] = {}
        for token in prompt:
            self._append(token)

    def _append(self, token: int) -> None:
        """Index the n-grams that end before `token`: they now have a successor."""
        end = len(self._text)
        for size in self._sizes:
            if size <= end:
                key = tuple(self._text[end - size : end])
                if self._first:
                    self._ends.setdefault(key, end)
                else:
                    self._ends[key] = end
        self._text.append(token)

    def propose(self, limit: int) -> Draft:
        """Up to the rule's own draft length."""
        size_now = len(self._text)
        for size in self._sizes:
            if size > size_now:
                continue
            end = self._ends.get(tuple(self._text[size_now - size :]))
            if end is not None:
                return _certain(self._text[end : end + min(limit, self._draft)], "ngram")
        return Draft((), (), ())

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        """Append what the target wrote."""
        del drafted, accepted
        for token in tokens:
            self._append(token)


class LineRealignment:
    """Cascade's static text: a cursor, dropped at a mismatch and found again only at a line's end.

    The place is taken from the longest common subsequence of the lines written so far and the lines of
    the predicted text. `newline[token]` says whether a token's text holds a line break.
    """

    def __init__(self, predicted: Sequence[int], newline: Sequence[bool], *, draft: int) -> None:
        self._predicted = list(predicted)
        self._newline = newline
        self._draft = draft
        self._cursor: int | None = 0
        self._starts = [0]
        self._lines: list[tuple[int, ...]] = []
        self._written: list[tuple[int, ...]] = []
        self._line: list[int] = []
        for index, token in enumerate(self._predicted):
            if newline[token]:
                self._lines.append(tuple(self._predicted[self._starts[-1] : index + 1]))
                self._starts.append(index + 1)
        self._lines.append(tuple(self._predicted[self._starts[-1] :]))

    def propose(self, limit: int) -> Draft:
        """The next tokens of the predicted text while the cursor holds."""
        if self._cursor is None:
            return Draft((), (), ())
        end = self._cursor + min(limit, self._draft)
        return _certain(self._predicted[self._cursor : end], "prediction")

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        """Move the cursor, or search for it when a line has just been completed."""
        del drafted, accepted
        for token in tokens:
            self._line.append(token)
            ended = self._newline[token]
            if ended:
                self._written.append(tuple(self._line))
                self._line = []
            cursor = self._cursor
            if cursor is not None and cursor < len(self._predicted) and self._predicted[cursor] == token:
                self._cursor = cursor + 1
            else:
                self._cursor = self._realign() if ended else None

    def _realign(self) -> int | None:
        matcher = difflib.SequenceMatcher(None, self._written, self._lines, autojunk=False)
        last = [block for block in matcher.get_matching_blocks() if block.size]
        if not last or last[-1].a + last[-1].size != len(self._written):
            return None
        following = last[-1].b + last[-1].size
        return self._starts[following] if following < len(self._starts) else None


class WindowResync:
    """EfficientEdit without its draft model: the whole remainder, found again by a window of tokens.

    After a mismatch nothing is drafted until the last `window` output tokens occur in the remainder of
    the predicted text; the first occurrence is taken.
    """

    def __init__(self, predicted: Sequence[int], *, window: int = 7) -> None:
        self._predicted = list(predicted)
        self._window = window
        self._cursor = 0
        self._aligned = True
        self._output: list[int] = []

    def propose(self, limit: int) -> Draft:
        """The whole remainder while aligned."""
        if not self._aligned:
            return Draft((), (), ())
        return _certain(self._predicted[self._cursor : self._cursor + limit], "prediction")

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        """Advance, or look for the window in the remainder."""
        del drafted, accepted
        for token in tokens:
            self._output.append(token)
            if not self._aligned:
                continue
            if self._cursor < len(self._predicted) and self._predicted[self._cursor] == token:
                self._cursor += 1
            else:
                self._aligned = False
        if not self._aligned and len(self._output) >= self._window:
            tail = self._output[-self._window :]
            for start in range(self._cursor, len(self._predicted) - self._window + 1):
                if self._predicted[start : start + self._window] == tail:
                    self._cursor, self._aligned = start + self._window, True
                    break
