"""The fused runner in torch operators: needs no compiler, runs on any device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..api import Progress, ProgressCallback
from .attention import attend, attend_sdpa
from .base import Kind
from .fused import PiecewiseFusedRunner, Rows
from .linear import Linear, make_linear
from .weights import LayerWeights, ModelShape, WeightFiles

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(layer, query, key, value), each `[rows, heads, head_dim]`, to `[rows, heads * head_dim]`."""


class _Layer(NamedTuple):
    input_norm: torch.Tensor
    qkv: Linear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    output: Linear
    post_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class AtenRunner(PiecewiseFusedRunner):
    """Query, key and value in one product, gate and up in another, weights prepacked, cache in place.

    `kind` is "bfloat16" or "float32". Rows do not depend on the rows beside them in float32; in bfloat16
    attention takes the framework's quicker kernel.
    """

    def __init__(
        self,
        folder: Path,
        shape: ModelShape,
        kind: Kind,
        device: torch.device,
        max_context: int | None,
        progress: ProgressCallback | None,
    ) -> None:
        self._dtype: torch.dtype = getattr(torch, kind)
        super().__init__(shape, kind, max_context, self._dtype, device)
        self._layers: list[_Layer] = []
        with WeightFiles(folder) as files, torch.inference_mode():
            # Copies, here and below, so that the mapped file can go: it would count as our memory.
            self._embedding = files.embedding.to(device, copy=True)
            self._final_norm = files.final_norm.to(device, self._dtype, copy=True)
            self._head = make_linear(files.head(shape).to(device), None, kind)
            for index, layer in enumerate(files.layers(shape)):
                self._layers.append(self._packed(layer, device))
                if progress is not None:
                    progress(Progress("load", folder.name, index + 1, shape.layers, "tensors"))
        self._cos, self._sin = (
            torch.cat([table, table], dim=1).to(device, self._dtype)
            for table in shape.rope_tables(self.max_context)
        )
        self._measure_room()

    @property
    def embedding_bytes(self) -> int:
        """Bytes of each number of the embeddings, which are kept as they are stored."""
        return self._embedding.element_size()

    def _packed(self, layer: LayerWeights, device: torch.device) -> _Layer:
        def put(tensor: torch.Tensor | None) -> torch.Tensor | None:
            return None if tensor is None else tensor.to(device, self._dtype, copy=True)

        def product(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
            return make_linear(
                weight.to(device), None if bias is None else bias.to(device, copy=True), self.kind
            )

        return _Layer(
            input_norm=layer.input_norm.to(device, self._dtype, copy=True),
            qkv=product(layer.qkv, layer.qkv_bias),
            q_norm=put(layer.q_norm),
            k_norm=put(layer.k_norm),
            output=product(layer.output, layer.output_bias),
            post_norm=layer.post_norm.to(device, self._dtype, copy=True),
            gate_up=product(layer.gate_up, layer.gate_up_bias),
            down=product(layer.down, layer.down_bias),
        )

    def _run_layers(self, rows: Rows) -> torch.Tensor:
        tokens, positions = (torch.tensor(ids, device=self.device) for ids in (rows.tokens, rows.positions))
        x = self._blocks(tokens, positions, partial(self._attend, rows))
        return x if len(rows.wanted) == len(rows.tokens) else x[rows.wanted]

    def _read_out(self, hidden: torch.Tensor, logits: torch.Tensor) -> None:
        logits.copy_(self._head_of(hidden))

    def _head_of(self, x: torch.Tensor) -> torch.Tensor:
        return self._head(F.rms_norm(x, (self.shape.hidden,), self._final_norm, self.shape.eps))

    def _blocks(self, tokens: torch.Tensor, positions: torch.Tensor, attend_: Attend) -> torch.Tensor:
        """All layers over `[rows]` tokens at their positions: `[rows, hidden]`, not yet normalised."""
        shape, width = self.shape, (self.shape.hidden,)
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        x = self._embedding[tokens].to(self._dtype)
        for index, layer in enumerate(self._layers):
            normed = F.rms_norm(x, width, layer.input_norm, shape.eps)
            joint = layer.qkv(normed).view(len(tokens), -1, shape.head_dim)
            query, key, value = torch.split(joint, [shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
            if layer.q_norm is not None and layer.k_norm is not None:
                query = F.rms_norm(query, (shape.head_dim,), layer.q_norm, shape.eps)
                key = F.rms_norm(key, (shape.head_dim,), layer.k_norm, shape.eps)
            x = x + layer.output(attend_(index, _rotate(query, cos, sin), _rotate(key, cos, sin), value))
            normed = F.rms_norm(x, width, layer.post_norm, shape.eps)
            gate, up = layer.gate_up(normed).chunk(2, dim=1)
            x = x + layer.down(F.silu(gate).mul_(up))
        return x

    def _attend(
        self, rows: Rows, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> torch.Tensor:
        """Writes keys and values of each span into its slot, and attends over the slot."""
        shape = self.shape
        kernel = attend_sdpa if self.kind == "bfloat16" else attend
        out = query.new_empty(len(query), shape.heads * shape.head_dim)
        for span in rows.spans:
            mine = slice(span.first_row, span.first_row + span.rows)
            keys, values = self.kv[span.slot][index]
            keys[:, span.start : span.start + span.rows] = key[mine].transpose(0, 1)
            values[:, span.start : span.start + span.rows] = value[mine].transpose(0, 1)
            grouped = query[mine].view(span.rows, shape.kv_heads, shape.group, shape.head_dim)
            answer = kernel(grouped.permute(1, 2, 0, 3), keys, values, span.start)
            out[mine] = answer.permute(2, 0, 1, 3).reshape(span.rows, -1)
        return out


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of halves (RoFormer, arXiv 2104.09864, in the layout of the Llama checkpoints)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
