"""What a pass computed, as the requests that shared it read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter_ns
from typing import TYPE_CHECKING, cast

from specclient_engine.request_state import Choose, ReadRow, RequestState
from specclient_engine.runner.base import PIECE_ROWS, Chunk, ModelRunner, piecewise
from specclient_engine.sampling import Row

if TYPE_CHECKING:
    import torch


class PassLogits:
    """Runs a pass; its logits are read by row, and brought to the host no more than needed.

    On a device only the index of each row's highest logit is fetched for untouched greedy decoding. On
    the host numpy finds it, one row at a time when asked: torch takes ten times as long over wide rows.

    Where the runner computes logits piece by piece, the first piece comes with the pass, and a further one
    when a row of it is read. `spent` is what all of this took so far, in nanoseconds, and `on_spent` hears
    of each part of it.
    """

    def __init__(
        self, runner: ModelRunner, chunks: Sequence[Chunk], on_spent: Callable[[int], None] = lambda _: None
    ) -> None:
        began = perf_counter_ns()
        self.spent = 0
        self._on_spent = on_spent
        self._pieces = piecewise(runner)
        self._first = 0
        if self._pieces is None:
            self._wanted, self._computed = 0, 0
            self._hold(runner.forward(chunks))
        else:
            self._wanted = self._pieces.begin(chunks)
            self._computed = min(self._wanted, PIECE_ROWS)
            self._hold(self._pieces.logits(0, self._computed))
        self._best = self._logits.argmax(dim=-1).tolist() if len(self._logits) and not self._on_host else []
        self._note(perf_counter_ns() - began)

    @property
    def whole(self) -> bool:
        """Whether the logits of every row that the pass wanted were computed."""
        return self._computed == self._wanted

    def readers(self, request: RequestState, first: int, count: int) -> tuple[Choose, ReadRow]:
        """How `request`, which has `count` rows from `first` on, chooses from a row, and reads a row.

        Rows are read in their order in the pass, and none is valid any more once a later one was read.
        """

        @cache
        def block() -> Row:
            return self._logits[first : first + count].cpu().numpy()

        def row(index: int) -> Row:
            return self._host_row(first + index) if self._on_host else cast("Row", block()[index])

        if not request.sampler.plain_greedy:
            generated = request.generated
            return (lambda index: request.sampler.choose(row(index), generated + index)), row
        if self._on_host:
            return (lambda index: int(self._host_row(first + index).argmax())), row
        return (lambda index: int(self._best[first + index])), row

    def finish(self) -> None:
        """Computes the rows that were not read yet, and waits for the device: what a whole pass takes."""
        while not self.whole:
            self._compute_from(self._first + len(self._logits))
        self._logits[-1, -1].item()

    def _host_row(self, row: int) -> Row:
        if row - self._first >= len(self._rows):
            self._compute_from(row)
        return cast("Row", self._rows[row - self._first])

    def _compute_from(self, row: int) -> None:
        assert self._pieces is not None
        began = perf_counter_ns()
        count = min(self._wanted - row, PIECE_ROWS)
        self._first = row
        self._computed += count
        self._hold(self._pieces.logits(row, count))
        self._note(perf_counter_ns() - began)

    def _note(self, nanoseconds: int) -> None:
        self.spent += nanoseconds
        self._on_spent(nanoseconds)

    def _hold(self, logits: torch.Tensor) -> None:
        self._logits = logits
        self._on_host = logits.device.type == "cpu"
        if self._on_host:
            self._rows: Row = logits.numpy()
