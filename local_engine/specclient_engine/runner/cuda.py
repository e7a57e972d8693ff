"""The fused runner for a GPU: passes of a few fixed shapes, each captured once as a graph.

Launching kernels costs more than a small model's arithmetic, and a graph launches them all at once; but a
graph is one shape at fixed addresses. So the cache is one block of memory, and a pass is padded to the
next bucket of (sequences, new tokens each, cached positions). Padding tokens are written behind the end
of their own sequence, where nothing is read before it is overwritten; padding sequences go to a slot of
their own. On a CPU the same code runs without graphs: that is how it is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from ..api import ProgressCallback
from ..errors import NotEnoughMemory, UnsupportedRequest
from .base import Dtype, Kind
from .fused import KEPT_ROWS, Rows, Span
from .fused_aten import AtenRunner
from .memory import WORKSPACE_BYTES, available_bytes
from .weights import ModelShape

SEQUENCES = (1, 2, 4, 8)
TOKENS = (1, 2, 4, 8, 17, 33, 65, 129)
"""New tokens of a captured pass; longer ones are prompts, computed one by one without a graph."""

FEWEST_CACHED = 256
CHUNK = 2048


@dataclass(slots=True)
class _Bucket:
    """A pass of one shape: where its inputs are put, and what comes out."""

    tokens: torch.Tensor
    starts: torch.Tensor
    slots: torch.Tensor
    hidden: torch.Tensor = field(init=False)
    graph: torch.cuda.CUDAGraph | None = None


class CudaRunner(AtenRunner):
    """Graphs for verification, plain calls for prompts. "auto" is bfloat16; there is no int8.

    At most eight sequences at a time, each with room for `max_context` positions.
    """

    pass_rows = CHUNK
    kept_rows = KEPT_ROWS
    is_piecewise = False

    def __init__(
        self,
        folder: Path,
        shape: ModelShape,
        dtype: Dtype,
        device: torch.device,
        max_context: int | None,
        progress: ProgressCallback | None,
    ) -> None:
        if dtype == "int8":
            raise UnsupportedRequest("int8 is computed on CPUs only: load the model with dtype='bfloat16'.")
        kind: Kind = "bfloat16" if dtype == "auto" else dtype
        super().__init__(folder, shape, kind, device, max_context, progress)
        # A padded pass may reach this far behind the last position.
        self._capacity = _bucket(self.max_context, None) + TOKENS[-1]
        numbers = 2 * shape.layers * shape.kv_heads * self._capacity * shape.head_dim
        free = available_bytes(device) - WORKSPACE_BYTES
        count = min(SEQUENCES[-1], free // (numbers * self._dtype.itemsize) - 1)
        if count < 1:
            need = 2 * numbers * self._dtype.itemsize
            raise NotEnoughMemory(
                f"A cache of {self.max_context} tokens needs {need / 2**20:.0f} MiB "
                f"and {free / 2**20:.0f} MiB are free: load the model with a smaller max_context."
            )
        size = (shape.layers, 2, count + 1, shape.kv_heads, self._capacity, shape.head_dim)
        self._cache = torch.zeros(size, dtype=self._dtype, device=device)
        self._free = list(range(count))
        self._spare = count
        self._buckets: dict[tuple[int, int, int], _Bucket] = {}
        self._pool: Any = None
        self._captures = device.type == "cuda"
        self.token_capacity = count * self.max_context
        reach = torch.arange(self._capacity, device=device).clamp_max(len(self._cos) - 1)
        self._cos, self._sin = self._cos[reach], self._sin[reach]

    def allocate(self, tokens: int) -> int:
        """A free slot; NotEnoughMemory when all are taken or `tokens` is more than one holds."""
        if tokens > self.max_context or not self._free:
            raise NotEnoughMemory(
                f"{len(self._free)} of the cache's {self._spare} slots are free, each for {self.max_context} "
                f"tokens, and {tokens} were asked for: wait for other requests, or shorten this one."
            )
        return self._free.pop()

    def release(self, slot: int) -> None:
        """Gives the slot back. Its contents are gone."""
        self._free.append(slot)

    def _compute(self, rows: Rows, logits: torch.Tensor) -> None:
        short = [span for span in rows.spans if span.rows <= TOKENS[-1]]
        groups = [short[i : i + SEQUENCES[-1]] for i in range(0, len(short), SEQUENCES[-1])]
        groups += [[span] for span in rows.spans if span.rows > TOKENS[-1]]
        place = {row: index for index, row in enumerate(rows.wanted)}
        for spans in groups:
            hidden = self._run(spans, rows.tokens)
            pairs = [
                (which, offset, place[span.first_row + offset])
                for which, span in enumerate(spans)
                for offset in range(span.rows)
                if span.first_row + offset in place
            ]
            if pairs:
                which, offset, to = (list(column) for column in zip(*pairs, strict=True))
                logits[to] = self._head_of(hidden[which, offset]).float()

    def _run(self, spans: Sequence[Span], tokens: Sequence[int]) -> torch.Tensor:
        """Hidden states `[sequences, tokens, hidden]` of the spans, padding included."""
        longest = max(span.rows for span in spans)
        captured = longest <= TOKENS[-1]
        width = _bucket(longest, TOKENS) if captured else longest
        count = _bucket(len(spans), SEQUENCES)
        seen = min(_bucket(max(span.start for span in spans) + width, None), self._capacity)
        padded = torch.zeros(count, width, dtype=torch.int64)
        starts = torch.zeros(count, dtype=torch.int64)
        slots = torch.full((count,), self._spare, dtype=torch.int64)
        for index, span in enumerate(spans):
            padded[index, : span.rows] = torch.tensor(tokens[span.first_row : span.first_row + span.rows])
            starts[index], slots[index] = span.start, span.slot
        if not captured:
            prompt = _Bucket(padded.to(self.device), starts.to(self.device), slots.to(self.device))
            return self._pass(prompt, seen)
        key = (count, width, seen)
        if key not in self._buckets:
            self._buckets[key] = self._captured(count, width, seen)
        bucket = self._buckets[key]
        for to, tensor in ((bucket.tokens, padded), (bucket.starts, starts), (bucket.slots, slots)):
            to.copy_(tensor)
        if bucket.graph is None:
            return self._pass(bucket, seen)
        bucket.graph.replay()
        return bucket.hidden

    def _captured(self, count: int, width: int, seen: int) -> _Bucket:
        """The bucket's tensors, and on a GPU the graph of its pass (`torch.cuda.graph`)."""
        tokens = torch.zeros(count, width, dtype=torch.int64, device=self.device)
        starts, slots = (torch.zeros(count, dtype=torch.int64, device=self.device) for _ in range(2))
        bucket = _Bucket(tokens, starts, slots.fill_(self._spare))
        if not self._captures:
            return bucket
        side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._pass(bucket, seen)
        torch.cuda.current_stream().wait_stream(side)
        bucket.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(bucket.graph, pool=self._pool):
            bucket.hidden = self._pass(bucket, seen)
        self._pool = bucket.graph.pool()
        return bucket

    def _pass(self, bucket: _Bucket, seen: int) -> torch.Tensor:
        count, width = bucket.tokens.shape
        positions = bucket.starts[:, None] + torch.arange(width, device=self.device)
        behind = torch.arange(seen, device=self.device) > positions[:, :, None]
        mask = torch.zeros(behind.shape, dtype=self._dtype, device=self.device).masked_fill_(
            behind, -torch.inf
        )
        folded = mask.repeat(1, self.shape.group, 1)[:, None]
        hidden = self._blocks(
            bucket.tokens.flatten(),
            positions.flatten(),
            partial(self._attend_padded, bucket, positions, folded),
        )
        return hidden.view(count, width, -1)

    def _attend_padded(
        self,
        bucket: _Bucket,
        positions: torch.Tensor,
        mask: torch.Tensor,
        index: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> torch.Tensor:
        """Heads of a group are folded into rows: kernels that know no grouped heads, or know them only
        without a mask, then serve, and keys are not repeated."""
        shape, (count, width) = self.shape, positions.shape
        cached = []
        for which, new in enumerate((key, value)):
            store = self._cache[index, which]
            store[bucket.slots[:, None], :, positions] = new.view(count, width, shape.kv_heads, -1)
            cached.append(store[:, :, : mask.shape[-1]].index_select(0, bucket.slots))
        grouped = query.view(count, width, shape.kv_heads, shape.group, -1).permute(0, 2, 3, 1, 4)
        rows = grouped.reshape(count, shape.kv_heads, shape.group * width, -1)
        out = F.scaled_dot_product_attention(rows, cached[0], cached[1], attn_mask=mask)
        apart = out.view(count, shape.kv_heads, shape.group, width, -1).permute(0, 3, 1, 2, 4)
        return apart.reshape(count * width, -1)


def _bucket(value: int, buckets: Sequence[int] | None) -> int:
    """The least bucket that holds `value`; None: powers of two from `FEWEST_CACHED` on."""
    if buckets is not None:
        return next(size for size in buckets if size >= value)
    size = FEWEST_CACHED
    while size < value:
        size *= 2
    return size
