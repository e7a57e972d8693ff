"""One draft from several guessers: the known text where it fits, repetition of earlier text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from specclient_engine.api import Draft
from specclient_engine.proposers.acceptance import AcceptanceTable
from specclient_engine.proposers.automaton import SuffixAutomaton
from specclient_engine.proposers.contexts import Line, LineContexts
from specclient_engine.proposers.drafting import LONG, STEADY, Ballot, Drafting
from specclient_engine.proposers.follower import TextFollower
from specclient_engine.proposers.memory import Memory
from specclient_engine.proposers.passage import Passage
from specclient_engine.proposers.vocabulary import BREAK, OPEN, Vocabulary

EMPTY = Draft((), (), ())
SEPARATOR = -1


class CompositeProposer:
    """Known texts, a suffix automaton and a passage of prompt and output, and short contexts, in one draft.

    Every guesser names a token and a key; the acceptance table knows how often such a guess is right,
    and the blend how far to believe it given the others. The best guess is drafted, and those who named
    it go on from there. Implements `api.Proposer`; propose() is linear in what it drafts, commit() in
    what it is given.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        followers: Sequence[TextFollower],
        table: AcceptanceTable,
        memory: Memory,
        vocabulary: Vocabulary,
    ) -> None:
        """`followers` follow the predicted texts, best first.

        `table` may be shared with other requests, `memory` with those that may be drafted from this one.
        """
        self._table = table
        self._memory = memory
        self._followers = list(followers)
        self._vocabulary = vocabulary
        self._history = SuffixAutomaton()
        self._passage = Passage(self._history.text)
        self._contexts = LineContexts()
        self._line = Line()
        self._output: list[int] = []
        self._ballots: list[Ballot] = []
        self._read(prompt)
        for follower in self._followers:
            if not self._history.covers(follower.known.tokens, LONG):
                self._read(follower.known.tokens)

    @property
    def known_tokens(self) -> int | None:
        """How many tokens the predicted texts have; None without any."""
        return sum(follower.tokens for follower in self._followers) or None

    def _read(self, tokens: Sequence[int]) -> None:
        """Remember a text, and be ready for another to begin."""
        for token in tokens:
            self._remember(token)
        self._history.append(SEPARATOR)
        self._line = Line()
        self._line.push(SEPARATOR, BREAK | OPEN, self._vocabulary.stretches(SEPARATOR))

    def _remember(self, token: int, *, copied: bool = False) -> None:
        """Take in one token; of what is `copied` steadily from a known text, the contexts know already."""
        self._history.append(token)
        if not copied:
            keys = self._line.keys()
            self._contexts.learn(keys, token)
            self._memory.learn(self._line, keys, token)
        self._line.push(token, self._vocabulary.flags(token), self._vocabulary.stretches(token))

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens, as far as their joint probability is worth considering."""
        drafting = Drafting(
            self._table,
            self._memory,
            self._contexts,
            self._vocabulary,
            self._history.walker(),
            self._line.copy(),
            self._passage.copy(),
        )
        drafting.pointers = [p for text in self._followers for p in text.pointers(self._line.place)]
        while len(drafting.tokens) < limit and not drafting.finished:
            if not (drafting.copy_known(limit) or drafting.copy_repetition(limit) or drafting.vote()):
                break
        self._ballots = drafting.ballots
        if not drafting.tokens:
            return EMPTY
        return Draft(tuple(drafting.tokens), tuple(drafting.sources), tuple(drafting.confidence))

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        """Follow the target's tokens; score every guess that was made for them.

        What was guessed counts, not what was verified: `drafted` and `accepted` may be another's.
        """
        del drafted, accepted
        self._score(tokens)
        for token in tokens:
            self._output.append(token)
            copied = any(text.known.run >= STEADY for text in self._followers)
            self._write(token, copied=copied)
            for follower in self._followers:
                follower.follow(token, self._output)
        self._ballots = []

    def _write(self, token: int, *, copied: bool) -> None:
        """Remember one more output token; a steadily copied known text is the only passage that matters."""
        if copied:
            self._passage.leave()
            self._remember(token, copied=True)
        else:
            self._passage.follow(token)
            self._remember(token)
            self._passage.begin(self._history.match_end, self._history.match_length)

    def _score(self, tokens: Sequence[int]) -> None:
        """A ballot counts as long as the tokens before it came out as drafted."""
        table, blend = self._table, self._table.blend
        for token, ballot in zip(tokens, self._ballots, strict=False):
            for guess, key in ballot.votes:
                table.update(key, guess == token)
            for guess, kind, features, believed in ballot.judged:
                blend.update(kind, features, believed, guess == token)
            if token != ballot.chosen:
                return
