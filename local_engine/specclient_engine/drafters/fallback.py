"""Known text and repetition first, a drafting model where they have nothing good."""

from __future__ import annotations

from collections.abc import Sequence

from specclient_engine.api import Draft, Proposer

SURE = 0.5
"""A first token at least this likely needs no model's opinion: known text costs nothing to draft."""


class FallbackProposer:
    """Asks `first`, and `second` only where the first is not sure of its first token."""

    def __init__(self, first: Proposer, second: Proposer) -> None:
        self._first = first
        self._second = second
        self._drafts: tuple[Draft | None, Draft | None] = (None, None)

    def propose(self, limit: int) -> Draft:
        """The draft of whichever is asked last, or the first's if the second has none."""
        known = self._first.propose(limit)
        if known.confidence and known.confidence[0] >= SURE:
            self._drafts = (known, None)
            return known
        guess = self._second.propose(limit)
        self._drafts = (known, guess)
        return guess if guess.tokens else known

    def commit(self, tokens: Sequence[int], _drafted: Draft, _accepted: int) -> None:
        """Each learns how far its own draft agreed with the target, whether or not it was used."""
        for proposer, draft in zip((self._first, self._second), self._drafts, strict=True):
            own = draft if draft is not None else Draft((), (), ())
            proposer.commit(tokens, own, agreement(own.tokens, tokens))
        self._drafts = (None, None)


def agreement(draft: Sequence[int], tokens: Sequence[int]) -> int:
    """How many tokens the two have in common from the start."""
    common = 0
    while common < min(len(draft), len(tokens)) and draft[common] == tokens[common]:
        common += 1
    return common
