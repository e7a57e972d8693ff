"""What the fused runners of the Llama-shaped families share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .base import PIECE_ROWS, Chunk, Kind
from .kv import BLOCK, KVSlots
from .weights import ModelShape

PASS_ROWS = 256
"""Most rows computed at once: what bounds the workspace. Longer prompts go through in pieces."""

KEPT_ROWS = 130
"""Rows of logits whose memory is kept between passes: the longest verified block with its first token, and
the first token of another."""


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive rows of a pass that belong to one slot and take the positions from `start` on."""

    slot: int
    start: int
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one pass, flat: token and position of each, whose they are, which get logits."""

    tokens: list[int]
    positions: list[int]
    spans: list[Span]
    wanted: list[int]


def split_rows(chunks: Sequence[Chunk], limit: int) -> Iterator[Rows]:
    """The chunks as passes of at most `limit` rows, in order; a long chunk is cut."""
    rows = Rows([], [], [], [])
    for chunk in chunks:
        done = 0
        while done < len(chunk.tokens):
            if len(rows.tokens) == limit:
                yield rows
                rows = Rows([], [], [], [])
            first = len(rows.tokens)
            count = min(limit - first, len(chunk.tokens) - done)
            start = chunk.start + done
            rows.spans.append(Span(chunk.slot, start, first, count))
            rows.tokens.extend(chunk.tokens[done : done + count])
            rows.positions.extend(range(start, start + count))
            skipped = min(count, max(0, chunk.logits_from - done))
            rows.wanted.extend(range(first + skipped, first + count))
            done += count
    if rows.tokens:
        yield rows


class FusedRunner(ABC):
    """A `ModelRunner` that computes the whole model itself. Subclasses say how one pass is computed.

    `kind` is what the weights are multiplied as: "float32", "bfloat16" or "int8".
    """

    pass_rows = PASS_ROWS
    kept_rows = KEPT_ROWS
    is_piecewise = False
    slot_block = BLOCK
    can_roll_back = True
    rollback_reason: str | None = None

    def __init__(
        self,
        shape: ModelShape,
        kind: Kind,
        max_context: int | None,
        kv_dtype: torch.dtype,
        device: torch.device,
        kv_width: int | None = None,
    ) -> None:
        self.shape = shape
        self.kind = kind
        self.device = device
        self.vocab_size = shape.vocab
        self.max_context = min(max_context or shape.max_positions, shape.max_positions)
        self.kv = KVSlots(shape, kv_width or shape.head_dim, kv_dtype, device)
        self.token_capacity = 0
        self._logits: torch.Tensor | None = None

    def _measure_room(self) -> None:
        """Gives the cache what memory is left once the weights are loaded."""
        self.kv.measure()
        self.token_capacity = self.kv.token_capacity

    def allocate(self, tokens: int) -> int:
        """A free slot with room for `tokens` positions. Raises NotEnoughMemory, with the figures."""
        return self.kv.allocate(tokens)

    def release(self, slot: int) -> None:
        """Gives the slot back. Its contents are gone."""
        self.kv.release(slot)

    @torch.inference_mode()
    def forward(self, chunks: Sequence[Chunk]) -> torch.Tensor:
        """One pass over all chunks: float32 `[rows wanted, vocab_size]`, in chunk order."""
        logits = self._room(sum(chunk.rows_wanted for chunk in chunks))
        done = 0
        for rows in split_rows(chunks, self.pass_rows):
            self._compute(rows, logits[done : done + len(rows.wanted)])
            done += len(rows.wanted)
        return logits

    def _room(self, rows: int) -> torch.Tensor:
        """Where logits go: the same memory every time, but for passes that want more rows than usual."""
        if rows > self.kept_rows:
            return torch.empty(rows, self.vocab_size, device=self.device)
        if self._logits is None:
            self._logits = torch.empty(self.kept_rows, self.vocab_size, device=self.device)
        return self._logits[:rows]

    @abstractmethod
    def _compute(self, rows: Rows, logits: torch.Tensor) -> None:
        """Writes the K/V of all rows and the logits of the wanted ones into `logits`."""


class PiecewiseFusedRunner(FusedRunner):
    """A fused runner whose head is computed apart from its layers: see `PiecewiseRunner`."""

    kept_rows = PIECE_ROWS
    is_piecewise = True

    @torch.inference_mode()
    def begin(self, chunks: Sequence[Chunk]) -> int:
        """As `forward`, without the logits; how many rows of them are wanted."""
        passes = [self._run_layers(rows) for rows in split_rows(chunks, self.pass_rows)]
        self._hidden = passes[0] if len(passes) == 1 else torch.cat(passes)
        return len(self._hidden)

    @torch.inference_mode()
    def logits(self, first: int, rows: int) -> torch.Tensor:
        """The logits of `rows` wanted rows of the last pass, from the one numbered `first` on."""
        logits = self._room(rows)
        self._read_out(self._hidden[first : first + rows], logits)
        return logits

    def _compute(self, rows: Rows, logits: torch.Tensor) -> None:
        hidden = self._run_layers(rows)
        if len(hidden):
            self._read_out(hidden, logits)

    @abstractmethod
    def _run_layers(self, rows: Rows) -> torch.Tensor:
        """Writes the K/V of all rows; what the layers make of the wanted ones, `[wanted, hidden]`."""

    @abstractmethod
    def _read_out(self, hidden: torch.Tensor, logits: torch.Tensor) -> None:
        """Writes the logits of rows that the layers have made into `logits`."""
