"""The fused runner in one call of compiled C a pass: what `kernels/pass.c` needs, laid out for it."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import torch

from ..api import Progress, ProgressCallback
from .base import Kind
from .fused import PASS_ROWS, PiecewiseFusedRunner, Rows
from .native_build import processor_name
from .native_kernels import (
    GROUP,
    KINDS,
    PANEL,
    STRIP,
    Layer,
    Matrix,
    Model,
    Pass,
    Span,
    Weights,
    Workspace,
    pack,
    round_up,
)
from .pages import HugePages
from .weights import LayerWeights, ModelShape, WeightFiles

WIDEST_HEAD = 256
MOST_HEADS_SHARING = 48


def kernels_fit(shape: ModelShape) -> bool:
    """Whether the kernels' fixed buffers hold the heads of this model."""
    return shape.head_dim <= WIDEST_HEAD and shape.group <= MOST_HEADS_SHARING


class NativeRunner(PiecewiseFusedRunner):
    """The kernels of `kernels/pass.c` over weights in strips. Rows never depend on the rows beside them.

    `kind` is "float32", "bfloat16" or "int8". The residual stream, the norms and the softmax are float32
    in all of them; int8 keeps its cache in bfloat16. `threads` compute a pass: at first as many as torch may
    use, and never more.
    """

    rows_are_alone = True

    def __init__(
        self,
        library: ctypes.CDLL,
        folder: Path,
        shape: ModelShape,
        kind: Kind,
        max_context: int | None,
        progress: ProgressCallback | None,
    ) -> None:
        self._library = library
        self._library.private_bytes.restype = self._library.stage_bytes.restype = c_int64
        self._kept: list[torch.Tensor] = []
        self._pages = HugePages()
        kv_kind: Kind = "float32" if kind == "float32" else "bfloat16"
        width = round_up(shape.head_dim, PANEL)
        super().__init__(shape, kind, max_context, getattr(torch, kv_kind), torch.device("cpu"), width)
        layers = (Layer * shape.layers)()
        # Each layer by one thread: threads that share a matrix spin while they wait for one another, and on a
        # busy machine that takes ten times as long.
        packers = ThreadPoolExecutor(torch.get_num_threads(), "specclient-pack")
        with WeightFiles(folder) as files, packers, torch.inference_mode():
            packed_head = packers.submit(self._matrix, Weights(files.head(shape)))
            rows = None if shape.tied else packers.submit(self._matrix, Weights(files.embedding))
            cos, sin = shape.rope_tables(self.max_context)
            for index, _ in enumerate(packers.map(self._fill, layers, files.layers(shape))):
                if progress is not None:
                    progress(Progress("load", folder.name, index + 1, shape.layers, "tensors"))
            head = packed_head.result()
            self._model = Model(
                layers=layers,
                final_norm=self._floats(files.final_norm),
                embedding=head if rows is None else rows.result(),
                head=head,
                cos=self._floats(cos),
                sin=self._floats(sin),
                n_layers=shape.layers,
                hidden=shape.hidden,
                hidden_stride=round_up(shape.hidden, PANEL),
                heads=shape.heads,
                kv_heads=shape.kv_heads,
                head_dim=shape.head_dim,
                head_stride=width,
                kind=KINDS[kind],
                kv_kind=KINDS[kv_kind],
                eps=shape.eps,
            )
        self.threads = torch.get_num_threads()
        self._make_workspace()
        self._measure_room()

    @property
    def cost_identity(self) -> str:
        """All that the time of a pass depends on, but for what else the machine is doing."""
        shape = self.shape
        sizes = (shape.layers, shape.hidden, shape.intermediate, shape.heads, shape.kv_heads, shape.head_dim)
        kernels, where = Path(self._library._name).name, processor_name()
        return repr(
            (sizes, shape.vocab, shape.tied, self.kind, self.max_context, self.threads, kernels, where)
        )

    def _keep(self, tensor: torch.Tensor) -> int:
        """The address of the tensor's numbers, which live as long as the runner."""
        tensor = tensor.contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()

    def _floats(self, tensor: torch.Tensor, length: int = 0) -> int:
        flat = tensor.float().flatten()
        return self._keep(torch.nn.functional.pad(flat, (0, max(0, length - len(flat)))).clone())

    def _fill(self, to: Layer, layer: LayerWeights) -> None:
        to.input_norm, to.post_norm = self._floats(layer.input_norm), self._floats(layer.post_norm)
        if layer.q_norm is not None and layer.k_norm is not None:
            to.q_norm, to.k_norm = self._floats(layer.q_norm), self._floats(layer.k_norm)
        to.qkv = self._matrix(Weights(layer.query, layer.key, layer.value), layer.qkv_bias)
        to.output = self._matrix(Weights(layer.output), layer.output_bias)
        gate_up, bias = Weights(layer.gate, layer.up), layer.gate_up_bias
        gate_up.rows = _interleave(gate_up.rows)
        to.gate_up = self._matrix(gate_up, None if bias is None else _interleave(bias))
        to.down = self._matrix(Weights(layer.down), layer.down_bias)

    def _matrix(self, weights: Weights, bias: torch.Tensor | None = None) -> Matrix:
        outputs = round_up(len(weights.rows), STRIP)
        made = Matrix(outputs=len(weights.rows), inputs=round_up(weights.width, PANEL))
        strips, scale = pack(self._library, weights, self.kind, self._pages)
        made.strips = self._keep(strips)
        if scale is not None:
            made.scale = self._keep(scale)
        if bias is not None:
            made.bias = self._floats(bias, outputs)
        return made

    def _make_workspace(self) -> None:
        model, layer = self._model, self._model.layers[0]
        widest = max(layer.qkv.inputs, layer.output.inputs, layer.down.inputs)
        query = self.shape.heads * model.head_stride
        widths = {
            "joint": round_up(self.shape.qkv_width, PANEL) * 4,
            "mixed": layer.output.inputs * 4,
            "inner": layer.down.inputs * 4,
            "query": query * 4,
            "operand": widest * 4,
            "operand_scale": widest // GROUP * 4,
            "operand_offset": widest // GROUP * 4,
        }
        self._workspace = Workspace(
            **{name: self._buffer(PASS_ROWS * bytes_) for name, bytes_ in widths.items()}
        )
        residual = self._pages.take(PASS_ROWS * model.hidden_stride * 4)
        self._residual = residual.view(torch.float32).view(PASS_ROWS, -1)
        self._workspace.residual = self._residual.data_ptr()
        self._stages = self._buffer(self._library.stage_bytes(self.shape.layers))
        self._private = self._buffer(self.threads * self._library.private_bytes(ctypes.byref(model)))

    def _buffer(self, count: int) -> int:
        return self._keep(self._pages.take(count))

    def _run_layers(self, rows: Rows) -> torch.Tensor:
        tokens = (c_int64 * len(rows.tokens))(*rows.tokens)
        positions = (c_int32 * len(rows.positions))(*rows.positions)
        spans = (Span * len(rows.spans))()
        for to, span in zip(spans, rows.spans, strict=True):
            cache = self.kv[span.slot]
            to.cache, to.capacity = cache.data_ptr(), cache.shape[3]
            to.start, to.first_row, to.rows = span.start, span.first_row, span.rows
        step = Pass(
            tokens=ctypes.addressof(tokens),
            positions=ctypes.addressof(positions),
            spans=ctypes.addressof(spans),
            rows=len(rows.tokens),
            n_spans=len(rows.spans),
            threads=self.threads,
        )
        self._call(self._library.forward, self._workspace, step)
        return self._residual[rows.wanted]

    def _read_out(self, hidden: torch.Tensor, logits: torch.Tensor) -> None:
        workspace = Workspace.from_buffer_copy(self._workspace)
        workspace.residual = hidden.data_ptr()
        step = Pass(logits=logits.data_ptr(), n_wanted=len(hidden), threads=self.threads)
        self._call(self._library.read_out, workspace, step)

    def _call(self, function: Any, workspace: Workspace, step: Pass) -> None:
        function(
            ctypes.byref(self._model),
            ctypes.byref(workspace),
            ctypes.byref(step),
            c_void_p(self._stages),
            c_void_p(self._private),
        )


def _interleave(joint: torch.Tensor) -> torch.Tensor:
    """Gate above up, as 16 rows of the one before 16 rows of the other, padded to whole strips."""
    gate, up = (_padded(half) for half in joint.chunk(2))
    return torch.cat([gate, up], dim=1).flatten(0, 1)


def _padded(half: torch.Tensor) -> torch.Tensor:
    tail = half.new_zeros(round_up(len(half), 16) - len(half), *half.shape[1:])
    return torch.cat([half, tail]).view(-1, 16, *half.shape[1:])
