"""A draft in the making: which guess is believed at each step, and who still follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from specclient_engine.proposers.acceptance import AcceptanceTable, Key, bucket
from specclient_engine.proposers.automaton import Walker, agreement
from specclient_engine.proposers.blend import MOST_SUPPORT, SHIFT, Features, log_odds
from specclient_engine.proposers.contexts import (
    KINDS,
    NOTHING,
    SECONDS,
    Line,
    LineContexts,
    between,
    latest,
    settled,
)
from specclient_engine.proposers.follower import Pointer
from specclient_engine.proposers.known_text import BREAKS, COPYING, INSIDE
from specclient_engine.proposers.memory import Memory
from specclient_engine.proposers.passage import Passage
from specclient_engine.proposers.vocabulary import BREAK, END, Vocabulary

LEAST_SURVIVAL = 0.01
"""A draft ends where the chance that all of it is accepted falls below this."""
SURE = 0.97
"""A copied token believed this much is not put to the vote of the short contexts."""
LONG = 8
"""Length from which a repeated passage contests the known text as an equal."""
STEADY = 16
"""Run of the known text from which it is copied in blocks."""
STEPS = 4
"""Draft steps on a guess after which it no longer matters how many they were."""
BELIEF = itemgetter(3)
"""The belief in a judged candidate."""


@dataclass(slots=True)
class Ballot:
    """What was said about one token to come: the votes, and how each candidate was judged."""

    chosen: int
    votes: list[tuple[int, Key]]
    judged: list[tuple[int, str, Features, float]] = field(default_factory=list)


class Drafting:
    """A draft in the making: a hypothetical continuation of the output, and who still follows it."""

    __slots__ = (
        "_contexts", "_flags", "_line", "_memory", "_passage", "_stretches", "_table", "_walker",
        "ballots", "confidence", "pointers", "sources", "survival", "tokens",
    )  # fmt: skip

    def __init__(
        self,
        table: AcceptanceTable,
        memory: Memory,
        contexts: LineContexts,
        vocabulary: Vocabulary,
        walker: Walker,
        line: Line,
        passage: Passage,
    ) -> None:
        self._table = table
        self._memory = memory
        self._contexts = contexts
        self._flags = vocabulary.flags
        self._stretches = vocabulary.stretches
        self._walker = walker
        self._line = line
        self._passage = passage
        self.pointers: list[Pointer] = []
        self.survival = 1.0
        self.tokens: list[int] = []
        self.sources: list[str] = []
        self.confidence: list[float] = []
        self.ballots: list[Ballot] = []

    @property
    def finished(self) -> bool:
        """Whether more would hardly be accepted, or the answer would be over."""
        ended = bool(self.tokens) and bool(self._flags(self.tokens[-1]) & END)
        return ended or self.survival < LEAST_SURVIVAL

    def copy_known(self, limit: int) -> bool:
        """Copy a stretch of a steadily matching known text, up to where anything contests it."""
        if not self.pointers:
            return False
        pointer, step = self.pointers[0], len(self.tokens)
        keys: list[Key]
        copying = pointer.kind in COPYING
        if copying and (pointer.kind == "start" or pointer.feature + step >= STEADY):
            length = bucket(pointer.feature + step)
            keys = [(pointer.kind, length, place) for place in range(3)]
        elif not copying and step >= STEPS:
            keys = [(pointer.kind, STEPS, int(place == BREAKS), pointer.feature) for place in range(3)]
        else:
            return False
        size = self._uncontested(pointer, min(limit - step, max(STEADY, pointer.feature + step)))
        if size <= 0:
            return False
        start = pointer.position
        copied = self._copy(pointer.tokens[start : start + size], pointer.places[start : start + size], keys)
        self.sources += ["prediction"] * copied
        self._walker.follow(pointer.tokens, start, copied)
        for other in self.pointers:
            other.position += copied
        return copied > 0

    def copy_repetition(self, limit: int) -> bool:
        """Copy a stretch of a long repeated passage, once no known text has anything to say."""
        walker, step = self._walker, len(self.tokens)
        if self.pointers or walker.length < STEADY:
            return False
        block = walker.upcoming(min(limit - step, walker.length))
        places = [BREAKS if self._flags(token) & BREAK else INSIDE for token in block]
        length = bucket(walker.length)
        keys: list[Key] = [("suffix", length, int(place == BREAKS)) for place in range(3)]
        copied = self._copy(block, places, keys)
        self.sources += ["suffix"] * copied
        walker.follow(block, 0, copied)
        return copied > 0

    def _copy(self, block: Sequence[int], places: Sequence[int], keys: Sequence[Key]) -> int:
        """Draft from `block` while the whole is likely enough; `keys` by place. How many were drafted."""
        rates = [self._table.rate(key) for key in keys]
        survival, line, flags, stretches = self.survival, self._line, self._flags, self._stretches
        count = 0
        for token, place in zip(block, places, strict=True):
            survival *= rates[place]
            if survival < LEAST_SURVIVAL:
                break
            self.ballots.append(Ballot(token, [(token, keys[place])]))
            self.confidence.append(rates[place])
            line.push(token, flags(token), stretches(token))
            count += 1
        if count:
            self._passage.leave()
        self.tokens += block[:count]
        self.survival = survival
        return count

    def _uncontested(self, pointer: Pointer, size: int) -> int:
        """Tokens from `pointer` on, at most `size`, on which all pointers and a long repetition agree."""
        size = min(size, len(pointer.tokens) - pointer.position)
        for other in self.pointers:
            if size <= 0:
                return 0
            rules = other.rules[other.position : other.position + size]
            size = next((index for index, rule in enumerate(rules) if rule is not None), size)
            size = agreement(pointer.tokens, pointer.position, other.tokens, other.position, size)
        if self._walker.length >= LONG:
            size = self._walker.agreement(pointer.tokens, pointer.position, size)
        return size

    def vote(self) -> bool:
        """Draft the token that is most believed, if anyone knows any."""
        votes = list(self._known_votes())
        known = len(votes)
        self._contest(votes)
        if not votes or self._table.rate(votes[0][1]) < SURE:
            votes += self._passage.guesses()
            keys = self._line.keys()
            seen = self._contexts.entries(keys)
            for kind, second, entry in zip(KINDS, SECONDS, seen, strict=True):
                if entry is not None:
                    rank, rival = settled(entry), between(entry)
                    votes.append((latest(entry), (kind, rank)))
                    if rival != NOTHING:
                        votes.append((rival, (second, rank)))
            votes += self._memory.votes(self._line, keys, seen)
        if not votes:
            return False
        judged = self._judge(votes)
        token, _, _, believed = max(judged, key=BELIEF)
        self.ballots.append(Ballot(token, votes, judged))
        self.survival *= believed
        if self.survival < LEAST_SURVIVAL:
            return False
        seconded = any(guess == token for guess, _ in votes[:known])
        self.tokens.append(token)
        self.sources.append("prediction" if seconded else "suffix")
        self.confidence.append(believed)
        self._walker.step(token)
        self._passage.follow(token)
        self._line.push(token, self._flags(token), self._stretches(token))
        self.pointers = [p for p in self.pointers if p.tokens[p.position] == token]
        for pointer in self.pointers:
            pointer.position += 1
        return True

    def _known_votes(self) -> Iterator[tuple[int, Key]]:
        """The known texts' votes: the cursor's first, then the guesses of where a lost one stands."""
        self.pointers = [p for p in self.pointers if p.position < len(p.tokens)]
        step = len(self.tokens)
        copied: int | None = None
        for pointer in self.pointers:
            token = pointer.tokens[pointer.position]
            if pointer.kind not in COPYING:
                place = pointer.places[pointer.position]
                yield token, (pointer.kind, min(step, STEPS), int(place == BREAKS), pointer.feature)
                continue
            rule = pointer.rule()
            if rule is not None:
                yield token, ("rewrite", rule.feature, int(copied is not None and copied != token))
            elif copied is None:
                copied = token
                yield token, (pointer.kind, bucket(pointer.feature + step), pointer.places[pointer.position])
            elif copied != token:
                yield token, ("another cursor", bucket(pointer.feature + step))

    def _contest(self, votes: list[tuple[int, Key]]) -> None:
        """Add the longest repetition; where it or a rule contradicts the cursor, both say so in their keys.

        Marginal rates mislead there: the cursor is nearly always right, except where it is contradicted.
        """
        walker = self._walker
        found = walker.next_token()
        at = next((i for i, (_, key) in enumerate(votes) if key[0] in COPYING), None)
        rule = next(((token, key) for token, key in votes if key[0] == "rewrite"), None)
        if found is not None and found >= 0:
            length = bucket(walker.length)
            if at is not None and found != votes[at][0] and walker.length >= LONG:
                token, (_, run, _) = votes[at]
                votes[at] = (token, ("cursor against suffix", run, length))
                votes.append((found, ("suffix against cursor", length, run)))
            else:
                votes.append((found, ("suffix", length, int(bool(self._flags(found) & BREAK)))))
        if rule is not None and at is not None and votes[at][0] != rule[0]:
            votes[at] = (votes[at][0], ("cursor against rewrite", rule[1][1]))

    def _judge(self, votes: Sequence[tuple[int, Key]]) -> list[tuple[int, str, Features, float]]:
        """Each candidate with its best vote's kind, the features of the vote, and the belief in it."""
        rate = self._table.rate
        support: dict[int, float] = {}
        best: dict[int, tuple[float, Key]] = {}
        for token, key in votes:
            value = log_odds(rate(key))
            shifted = value + SHIFT if value > -SHIFT else 0.0
            if token not in best:
                support[token], best[token] = shifted, (value, key)
                continue
            support[token] += shifted
            if value > best[token][0]:
                best[token] = (value, key)
        ranked = sorted([value for value, _ in best.values()], reverse=True)
        first, second = ranked[0], ranked[1] if len(ranked) > 1 else -SHIFT
        probability = self._table.blend.probability
        judged = []
        for token, (own, key) in best.items():
            rival = (second if own == first else first) + SHIFT
            others = support[token] - (own + SHIFT if own > -SHIFT else 0.0)
            kind = str(key[0])
            features = (
                own,
                others if others < MOST_SUPPORT else MOST_SUPPORT,
                rival if rival > 0.0 else 0.0,
            )
            judged.append((token, kind, features, probability(kind, features)))
        return judged
