"""One draft from several guessers: the known text where it fits, repetition of earlier text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from specclient_engine.api import Draft
from specclient_engine.proposers.acceptance import AcceptanceTable, Key, bucket
from specclient_engine.proposers.automaton import SuffixAutomaton, Walker
from specclient_engine.proposers.known_text import KnownText

LEAST_SURVIVAL = 0.02
EMPTY = Draft((), (), ())


class CompositeProposer:
    """Blends known texts with a suffix automaton over prompt and output."""

    def __init__(self, prompt: Sequence[int], known: Sequence[Sequence[int]], table: AcceptanceTable) -> None:
        self._table = table
        self._known = [KnownText(tokens) for tokens in known]
        self._history = SuffixAutomaton(prompt)
        for number, tokens in enumerate(known):
            self._history.append(-2 - number)
            for token in tokens:
                self._history.append(token)
        self._history.append(-1)
        self._output: list[int] = []
        self._votes: list[list[tuple[int, Key]]] = []

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens, as far as their joint probability is worth considering."""
        tokens: list[int] = []
        sources: list[str] = []
        confidence: list[float] = []
        self._votes = []
        walker = self._history.walker()
        pointers = [p for text in self._known for p in self._pointers(text)]
        survival = 1.0
        for step in range(limit):
            votes = []
            for text, place, kind, feature in pointers:
                if place < len(text.tokens):
                    votes.append(
                        (
                            text.tokens[place],
                            (
                                kind,
                                feature if kind != "cursor" else bucket(feature + step),
                                min(step, 3) if kind != "cursor" else 0,
                            ),
                        )
                    )
            following = walker.next_token()
            if following is not None and following >= 0:
                votes.append((following, ("suffix", bucket(walker.length), 0)))
            if not votes:
                break
            self._votes.append(votes)
            rate, token, _ = max((self._table.rate(key), token, key) for token, key in votes)
            survival *= rate
            if survival < LEAST_SURVIVAL:
                break
            tokens.append(token)
            # Where the known text says the same, it is the known text's: repetition only seconded it.
            known = any(guess == token and kind != "suffix" for guess, (kind, *_) in votes)
            sources.append("prediction" if known else "suffix")
            confidence.append(rate)
            walker.step(token)
            pointers = [
                (text, place + 1, kind, feature)
                for text, place, kind, feature in pointers
                if place < len(text.tokens) and text.tokens[place] == token
            ]
        return Draft(tuple(tokens), tuple(sources), tuple(confidence)) if tokens else EMPTY

    @staticmethod
    def _pointers(text: KnownText) -> list[tuple[KnownText, int, str, int]]:
        if not text.lost:
            return [(text, text.cursor, "cursor", text.run)]
        found = [
            (text, text.anchor + text.lost, "substitution", min(text.lost, 4)),
            (text, text.anchor, "insertion", min(text.lost, 4)),
        ]
        if text.run:
            found.append((text, text.cursor, "resync", bucket(text.run)))
        return found

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        """Follow the target's tokens; score every guess that was made for them."""
        for index, token in enumerate(tokens):
            if index < len(self._votes) and index <= accepted:
                for guess, key in self._votes[index]:
                    self._table.update(key, guess == token)
            self._output.append(token)
            self._history.append(token)
            for text in self._known:
                text.advance(token, self._output)
        self._votes = []
