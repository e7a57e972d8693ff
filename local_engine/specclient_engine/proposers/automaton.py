"""An online suffix automaton over token ids: the longest earlier occurrence of what was just written.

Method: the directed acyclic word graph of Blumer et al. (1985), built online in amortised O(1) per token
with hashed transitions; its use for drafting follows SAM-Decoding (arXiv 2411.10666). Where that work
keeps only the earliest end of every state, this one also keeps a recent end, which is the better guess
in edited text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

RECENT_HOPS = 16
"""How many suffix links a new token's position is written to: a bound, so that runs stay linear."""
CATCH_UP = 64
"""Longest match that is remembered when a walk leaves a passage that it went along in one go."""


class SuffixAutomaton:
    """All substrings of `text`, extended one token at a time.

    `match_length` is the length of the longest suffix of `text` that also occurs earlier, and
    `match_end` the index just after a recent such occurrence: `text[match_end]` is what followed it.
    """

    __slots__ = ("_last", "_length", "_link", "_next", "_recent", "match_end", "match_length", "text")

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.text: list[int] = []
        self.match_length = 0
        self.match_end = 0
        self._next: list[dict[int, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        self._recent = [0]
        self._last = 0
        for token in tokens:
            self.append(token)

    @property
    def states(self) -> int:
        """Number of states; at most twice the number of tokens."""
        return len(self._length)

    def append(self, token: int) -> None:
        """Extend the text by one token."""
        following, link, length = self._next, self._link, self._length
        self.text.append(token)
        end = len(self.text)
        new = len(length)
        following.append({})
        length.append(end)
        link.append(0)
        self._recent.append(end)
        state = self._last
        while state != -1 and token not in following[state]:
            following[state][token] = new
            state = link[state]
        if state != -1:
            target = following[state][token]
            link[new] = target if length[target] == length[state] + 1 else self._split(state, token, target)
        self._last = new
        self._remember_match(link[new], end)

    def _split(self, state: int, token: int, target: int) -> int:
        """Clone `target` for the shorter strings that now end in two places."""
        following, link = self._next, self._link
        clone = len(self._length)
        self._length.append(self._length[state] + 1)
        following.append(dict(following[target]))
        link.append(link[target])
        self._recent.append(self._recent[target])
        while state != -1 and following[state].get(token) == target:
            following[state][token] = clone
            state = link[state]
        link[target] = clone
        return clone

    def _remember_match(self, state: int, end: int) -> None:
        """Note the match of the whole text's suffix, then make `end` the recent end of its states."""
        recent, link = self._recent, self._link
        self.match_length = self._length[state]
        self.match_end = recent[state]
        for _ in range(RECENT_HOPS):
            if state <= 0:
                break
            recent[state] = end
            state = link[state]

    def walker(self) -> Walker:
        """A walk that starts at the present match and may go on with tokens not (yet) in the text."""
        return Walker(self, self._link[self._last] if self.text else 0, self.match_length, self.match_end)

    def step(self, state: int, length: int, token: int) -> tuple[int, int]:
        """State and length of the longest suffix of (`length` tokens at `state`) + `token`."""
        following, link = self._next, self._link
        while token not in following[state]:
            state = link[state]
            if state == -1:
                return 0, 0
            length = self._length[state]
        return following[state][token], length + 1

    def covers(self, tokens: Sequence[int], length: int) -> bool:
        """Whether nine in ten of `tokens` lie in passages of `length` or more that the text holds."""
        state = matched = covered = 0
        for token in tokens:
            state, matched = self.step(state, matched, token)
            covered += 1 if matched > length else length if matched == length else 0
        return covered >= 0.9 * len(tokens)

    def end_of(self, state: int) -> int:
        """Index just after a recent occurrence of the strings of `state`."""
        return self._recent[state]


def agreement(ours: Sequence[int], start: int, theirs: Sequence[int], their_start: int, size: int) -> int:
    """Length of the common beginning of ours[start:] and theirs[their_start:], at most `size`."""
    one, other = ours[start : start + size], theirs[their_start : their_start + size]
    if one == other:
        return len(one)
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class Walker:
    """The longest match of a hypothetical continuation, without changing the automaton."""

    __slots__ = ("_automaton", "_behind", "_state", "end", "length")

    def __init__(self, automaton: SuffixAutomaton, state: int, length: int, end: int) -> None:
        self._automaton = automaton
        self._state = state
        self._behind = False
        self.length = length
        self.end = end

    def next_token(self) -> int | None:
        """What followed the match, if anything did."""
        text = self._automaton.text
        return text[self.end] if self.length and self.end < len(text) else None

    def upcoming(self, size: int) -> list[int]:
        """Up to `size` tokens that followed the match, before any separator (a negative token)."""
        block = self._automaton.text[self.end : self.end + size]
        stop = next((index for index, token in enumerate(block) if token < 0), len(block))
        return block[:stop]

    def agreement(self, tokens: Sequence[int], start: int, size: int) -> int:
        """How many of tokens[start : start + size] the text after the match repeats."""
        return agreement(tokens, start, self._automaton.text, self.end, size)

    def follow(self, tokens: Sequence[int], start: int, size: int) -> None:
        """Continue with tokens[start : start + size]: in one go where the match goes on likewise."""
        common = self.agreement(tokens, start, size) if self.length else 0
        if common:
            self.end += common
            self.length += common
            self._behind = True
        for token in tokens[start + common : start + size]:
            self.step(token)

    def step(self, token: int) -> None:
        """Continue with `token`."""
        if self._behind:
            self._catch_up()
        text = self._automaton.text
        follows = self.length and self.end < len(text) and text[self.end] == token
        self._state, self.length = self._automaton.step(self._state, self.length, token)
        self.end = self.end + 1 if follows else self._automaton.end_of(self._state)

    def _catch_up(self) -> None:
        """Find the state of the match after going along it without the automaton."""
        state, length = 0, 0
        for token in self._automaton.text[self.end - min(self.length, CATCH_UP) : self.end]:
            state, length = self._automaton.step(state, length, token)
        self._state, self.length, self._behind = state, length, False
