"""What a pass computed, as the requests that shared it read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from operator import mul
from time import perf_counter_ns
from typing import TYPE_CHECKING, cast

from specclient_engine.api import Draft
from specclient_engine.request_state import Choose, ReadRow, RequestState
from specclient_engine.runner.base import Chunk, LateRunner, ModelRunner, late_share
from specclient_engine.sampling import Row

if TYPE_CHECKING:
    import torch


LATE_ROWS = 48
"""Rows of logits computed together where more are asked for: fewer would read the weights too often."""
FIRST_ROWS = 24
"""Least rows computed with the pass: as few as keep the processor busy while the weights come from memory."""
TILE_ROWS = 12
LIKELY = 0.4
"""Chance of being looked at from which a row is computed with the pass."""


def run_pass(runner: ModelRunner, chunks: Sequence[Chunk], drafts: Sequence[Draft]) -> PassLogits:
    """One pass. A lone draft's later rows get their logits when verification comes to them, where the
    runner can do that; `drafts` are those of the first chunks."""
    wanted = chunks[0].rows_wanted
    if len(chunks) > 1 or not drafts or not late_share(runner):
        return PassLogits(runner.forward(chunks))
    survival = accumulate(drafts[0].confidence, mul, initial=1.0)
    likely = sum(chance >= LIKELY for chance in survival)
    ready = max(FIRST_ROWS, -(-likely // TILE_ROWS) * TILE_ROWS)
    if ready >= wanted:
        return PassLogits(runner.forward(chunks))
    late = cast("LateRunner", runner)
    return PassLogits(late.begin(chunks[0], ready), ready, late.complete)


class PassLogits:
    """The logits of one pass, read by row, and brought to the host no more than needed.

    On a device only the index of each row's highest logit is fetched for untouched greedy decoding. On
    the host numpy finds it, one row at a time when asked: torch takes ten times as long over wide rows.

    Of a pass that was only begun the first `ready` rows are there, and `complete` computes more; `on_late`
    hears how many nanoseconds that took.
    """

    def __init__(
        self, logits: torch.Tensor, ready: int | None = None, complete: Callable[[int], None] | None = None
    ) -> None:
        self._logits = logits
        self.ready = len(logits) if ready is None else ready
        self.on_late: Callable[[int], None] = lambda _: None
        self._complete = complete
        self._on_host = logits.device.type == "cpu"
        self._best = logits.argmax(dim=-1).tolist() if len(logits) and not self._on_host else []

    def readers(self, request: RequestState, first: int, count: int) -> tuple[Choose, ReadRow]:
        """How `request`, which has `count` rows from `first` on, chooses from a row, and reads a row."""

        @cache
        def block() -> Row:
            return self._logits[first : first + count].cpu().numpy()

        def row(index: int) -> Row:
            self._need(first + index)
            rows = block()
            return cast("Row", rows[index])

        if not request.sampler.plain_greedy:
            generated = request.generated
            return (lambda index: request.sampler.choose(row(index), generated + index)), row
        if self._on_host:
            return (lambda index: int(row(index).argmax())), row
        return (lambda index: int(self._best[first + index])), row

    def _need(self, row: int) -> None:
        if row < self.ready or self._complete is None:
            return
        began = perf_counter_ns()
        until = min(len(self._logits), row + LATE_ROWS)
        self._complete(until)
        self.ready = until
        self.on_late(perf_counter_ns() - began)
