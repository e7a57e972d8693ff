"""What a pass computed, as the requests that shared it read it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from specclient_engine.request_state import Choose, ReadRow, RequestState
from specclient_engine.sampling import Row

if TYPE_CHECKING:
    import torch


class PassLogits:
    """The logits of one pass, read by row, and brought to the host no more than needed.

    On a device only the index of each row's highest logit is fetched for untouched greedy decoding. On
    the host numpy finds it, one row at a time when asked: torch takes ten times as long over wide rows.
    """

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits
        self._on_host = logits.device.type == "cpu"
        self._best = logits.argmax(dim=-1).tolist() if len(logits) and not self._on_host else []

    def readers(self, request: RequestState, first: int, count: int) -> tuple[Choose, ReadRow]:
        """How `request`, which has `count` rows from `first` on, chooses from a row, and reads a row."""

        @cache
        def block() -> Row:
            return self._logits[first : first + count].cpu().numpy()

        def row(index: int) -> Row:
            rows = block()
            return cast("Row", rows[index])

        if not request.sampler.plain_greedy:
            generated = request.generated
            return (lambda index: request.sampler.choose(row(index), generated + index)), row
        if self._on_host:
            return (lambda index: int(row(index).argmax())), row
        return (lambda index: int(self._best[first + index])), row
