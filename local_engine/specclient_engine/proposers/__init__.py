"""Draft tokens without a model: from known text and from repetition. Token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Sequence

from specclient_engine.api import Tokenizer
from specclient_engine.proposers.acceptance import AcceptanceTable
from specclient_engine.proposers.composite import CompositeProposer
from specclient_engine.proposers.follower import TextFollower
from specclient_engine.proposers.vocabulary import Vocabulary

__all__ = ["AcceptanceTable", "CompositeProposer", "build_proposer"]


def build_proposer(
    prompt_ids: Sequence[int],
    predictions: Sequence[str],
    tokenizer: Tokenizer,
    *,
    table: AcceptanceTable | None = None,
    salt: str | None = None,
) -> CompositeProposer:
    """The proposer of one request: its predictions, then repetition of prompt and output.

    `table` carries learnt acceptance from request to request; None starts from the priors. Of what earlier
    requests wrote, only that of those with the same `salt` is drafted (`GenerationRequest.cache_salt`). After
    a prediction the end of the answer is expected, as the end token that the prompt itself last used.
    """
    vocabulary = Vocabulary(tokenizer)
    end = next((token for token in reversed(prompt_ids) if token in tokenizer.eos_ids), None)
    followers = [TextFollower(text, tokenizer, vocabulary, end) for text in predictions if text]
    if table is None:
        table = AcceptanceTable()
    return CompositeProposer(prompt_ids, followers, table, table.memories.of(salt), vocabulary)
