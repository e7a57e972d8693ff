"""The seam between the scheduler and whatever computes the model.

A runner owns the weights and the KV cache. The cache is a set of slots, one a sequence; a slot is a
row of positions, and whoever uses it keeps its length. Rolling back is therefore free: the next chunk
simply starts at a smaller position, and what lies behind it is overwritten before it is ever read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, cast

if TYPE_CHECKING:
    import torch

Kind = Literal["bfloat16", "float32", "int8"]
"""What weights are multiplied as."""

BYTES: dict[Kind, int] = {"bfloat16": 2, "float32": 4, "int8": 1}
"""What one weight takes."""

Dtype = Literal["auto"] | Kind
"""A kind by name, or the quickest of those that keep the model's answers."""


@dataclass(slots=True)
class Chunk:
    """New tokens of one sequence for one pass.

    `tokens` take the positions `start`, `start + 1`, …; everything before `start` is in the cache of
    `slot` already, and everything at or behind it is forgotten. Rows from `logits_from` on get logits
    (`len(tokens)`: none of them do).
    """

    slot: int
    start: int
    tokens: Sequence[int]
    logits_from: int = 0

    @property
    def rows_wanted(self) -> int:
        """How many rows of logits this chunk gets."""
        return len(self.tokens) - self.logits_from


class ModelRunner(Protocol):
    """Runs one causal language model over slots of cached tokens. Used by one thread at a time.

    `vocab_size` is the width of the logits. `max_context` is the most positions a sequence may have.
    `token_capacity` is the most tokens that all slots together can hold when none is taken: what needs
    more can never be admitted. `can_roll_back` is False for a model whose state is not a function of
    the cache's length (recurrent state, a window that drops old tokens); then `start` never goes back,
    and `rollback_reason` says why in half a sentence.
    """

    vocab_size: int
    max_context: int
    token_capacity: int
    device: torch.device
    can_roll_back: bool
    rollback_reason: str | None

    def allocate(self, tokens: int) -> int:
        """A free slot with room for `tokens` positions. Raises NotEnoughMemory, with the figures."""
        ...

    def release(self, slot: int) -> None:
        """Gives the slot back. Its contents are gone."""
        ...

    def forward(self, chunks: Sequence[Chunk]) -> torch.Tensor:
        """One pass over all chunks (each of another slot): float32 `[rows wanted, vocab_size]`.

        Rows come in chunk order. The tensor is valid until the next call; it may be on the device.
        The K/V of every token is written at its position, whether or not its logits were wanted.
        """
        ...


PIECE_ROWS = 48
"""Rows of logits computed together where a pass wants more: fewer would read the head too often."""


class PiecewiseRunner(ModelRunner, Protocol):
    """A runner that computes the logits of a pass piece by piece.

    All of them take hundreds of megabytes over a large vocabulary, and verification often ends before it
    comes to the last.
    """

    def begin(self, chunks: Sequence[Chunk]) -> int:
        """As `forward`, without the logits; how many rows of them are wanted."""
        ...

    def logits(self, first: int, rows: int) -> torch.Tensor:
        """The logits of `rows` wanted rows of the last pass, from the one numbered `first` on.

        `rows` is at most PIECE_ROWS. The tensor is valid until the next call of any kind.
        """
        ...


def piecewise(runner: ModelRunner) -> PiecewiseRunner | None:
    """The runner, if it computes logits piece by piece."""
    return cast("PiecewiseRunner", runner) if getattr(runner, "is_piecewise", False) else None


def rows_alone(runner: ModelRunner) -> bool:
    """Whether no bit of a row depends on which rows share its pass, so that any grouping gives the same."""
    return bool(getattr(runner, "rows_are_alone", False))


def slot_room(runner: ModelRunner, tokens: int) -> int:
    """The positions that a slot for `tokens` holds, where a runner gives them out in blocks."""
    block: int = getattr(runner, "slot_block", 1)
    return -(-tokens // block) * block


class RevealingRunner(ModelRunner, Protocol):
    """A runner that also shows hidden states, for heads that draft from them.

    `revealed` holds those of the last pass: a row for every token of every chunk, in chunk order, with
    the wanted states side by side.
    """

    revealed: torch.Tensor

    def reveal(self, states: Sequence[int]) -> None:
        """Shows these from now on: 0 the embeddings, k the input of layer k, -1 the last, normalised."""
        ...
