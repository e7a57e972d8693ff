"""An online suffix automaton over token ids: the longest earlier occurrence of what was just written.

Method: the directed acyclic word graph of Blumer et al. (1985), built online in amortised O(1) per token
with hashed transitions; its use for drafting follows SAM-Decoding (arXiv 2411.10666). Where that work
keeps only the earliest end of every state, this one also keeps a recent end, which is the better guess
in edited text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

RECENT_HOPS = 16
"""How many suffix links a new token's position is written to: a bound, so that runs stay linear."""
CATCH_UP = 64
"""Longest match that is remembered when a walk leaves a passage that it went along in one go."""
NOTHING, SEVERAL = -2, -3
"""In place of the one token that follows a state: none does (yet), or more than one."""


class SuffixAutomaton:
    """All substrings of `text`, extended one token at a time.

    `match_length` is the length of the longest suffix of `text` that also occurs earlier, and
    `match_end` the index just after a recent such occurrence: `text[match_end]` is what followed it.
    Tokens are -1 (a separator) or more.

    Six in seven states are followed by one token: `_only` names it and `_target` the state it leads to.
    Of the others `_only` says so, and `_target` is the place of their transitions in `_branches`.
    Targets are numbers of their own, which an array keeps in 4 bytes each; what the other columns hold is
    mostly held elsewhere as well, and lists are quicker.
    """

    __slots__ = (
        "_branches", "_last", "_length", "_link", "_only", "_recent", "_target",
        "match_end", "match_length", "text",
    )  # fmt: skip

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.text: list[int] = []
        self.match_length = 0
        self.match_end = 0
        self._only = [NOTHING]
        self._target = array("I", [0])
        self._branches: list[dict[int, int]] = []
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
        only, targets, link = self._only, self._target, self._link
        self.text.append(token)
        end = len(self.text)
        new = len(only)
        only.append(NOTHING)
        targets.append(0)
        link.append(0)
        self._length.append(end)
        self._recent.append(end)
        state, found = self._last, -1
        while state != -1:
            first = only[state]
            if first == NOTHING:
                only[state], targets[state] = token, new
            elif first == token:
                found = targets[state]
                break
            elif first == SEVERAL:
                branches = self._branches[targets[state]]
                if token in branches:
                    found = branches[token]
                    break
                branches[token] = new
            else:
                self._branch(state, {first: targets[state], token: new})
            state = link[state]
        if found != -1:
            joined = self._length[found] == self._length[state] + 1
            link[new] = found if joined else self._split(state, token, found)
        self._last = new
        self._remember_match(link[new], end)

    def _branch(self, state: int, transitions: dict[int, int]) -> None:
        """From now on several tokens follow `state`."""
        self._only[state], self._target[state] = SEVERAL, len(self._branches)
        self._branches.append(transitions)

    def _split(self, state: int, token: int, target: int) -> int:
        """Clone `target` for the shorter strings that now end in two places."""
        only, targets, branches = self._only, self._target, self._branches
        first, to = only[target], targets[target]
        clone = len(only)
        only.append(first)
        targets.append(to)
        self._link.append(self._link[target])
        self._length.append(self._length[state] + 1)
        self._recent.append(self._recent[target])
        if first == SEVERAL:
            self._branch(clone, dict(branches[to]))
        while state != -1:
            if only[state] == SEVERAL:
                transitions = branches[targets[state]]
                if transitions.get(token) != target:
                    break
                transitions[token] = clone
            elif only[state] == token and targets[state] == target:
                targets[state] = clone
            else:
                break
            state = self._link[state]
        self._link[target] = clone
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
        while True:
            first = self._only[state]
            if first == token:
                return self._target[state], length + 1
            if first == SEVERAL:
                found = self._branches[self._target[state]].get(token)
                if found is not None:
                    return found, length + 1
            state = self._link[state]
            if state == -1:
                return 0, 0
            length = self._length[state]

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
