"""Draft tokens without a model: from known text and from repetition. Token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Sequence

from specclient_engine.api import Proposer, Tokenizer
from specclient_engine.proposers.acceptance import AcceptanceTable
from specclient_engine.proposers.composite import CompositeProposer

__all__ = ["AcceptanceTable", "CompositeProposer", "build_proposer"]


def build_proposer(
    prompt_ids: Sequence[int],
    predictions: Sequence[str],
    tokenizer: Tokenizer,
    *,
    table: AcceptanceTable | None = None,
) -> Proposer:
    """The proposer of one request: its predictions, then repetition of prompt and output.

    `table` carries learnt acceptance from request to request; None starts from the priors.
    """
    known = [tokenizer.encode(text) for text in predictions if text]
    return CompositeProposer(prompt_ids, known, table if table is not None else AcceptanceTable())
