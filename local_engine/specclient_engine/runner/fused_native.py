"""The fused runner in one call of compiled C a pass: what `kernels/pass.c` needs, laid out for it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any, ClassVar

import torch

from ..api import Progress, ProgressCallback
from .fused import PASS_ROWS, FusedRunner, Rows
from .native_build import instructions
from .pages import HugePages
from .weights import LayerWeights, ModelShape, WeightFiles

STRIP = 32
PANEL = 64
GROUP = 64
WIDEST_HEAD = 256
MOST_HEADS_SHARING = 48
KINDS = {"float32": 0, "bfloat16": 1, "int8": 2}


def kernels_fit(shape: ModelShape) -> bool:
    """Whether the kernels' fixed buffers hold the heads of this model."""
    return shape.head_dim <= WIDEST_HEAD and shape.group <= MOST_HEADS_SHARING


class _Matrix(Structure):
    _fields_: ClassVar[Any] = [
        ("strips", c_void_p),
        ("scale", c_void_p),
        ("bias", c_void_p),
        ("outputs", c_int32),
        ("inputs", c_int32),
    ]


class _Layer(Structure):
    _fields_: ClassVar[Any] = [
        *((name, c_void_p) for name in ("input_norm", "q_norm", "k_norm", "post_norm")),
        *((name, _Matrix) for name in ("qkv", "output", "gate_up", "down")),
    ]


class _Model(Structure):
    _fields_: ClassVar[Any] = [
        ("layers", POINTER(_Layer)),
        *((name, c_void_p) for name in ("final_norm", "cos", "sin", "embedding", "embedding32")),
        ("head", _Matrix),
        *(
            (name, c_int32)
            for name in (
                "n_layers",
                "hidden",
                "hidden_stride",
                "heads",
                "kv_heads",
                "head_dim",
                "head_stride",
                "kind",
                "kv_kind",
            )
        ),
        ("eps", c_float),
    ]


class _Span(Structure):
    _fields_: ClassVar[Any] = [
        ("cache", c_void_p),
        ("capacity", c_int64),
        *((name, c_int32) for name in ("start", "first_row", "rows", "pad")),
    ]


class _Pass(Structure):
    _fields_: ClassVar[Any] = [
        *((name, c_void_p) for name in ("tokens", "positions", "wanted", "spans", "logits")),
        *((name, c_int32) for name in ("rows", "n_wanted", "n_spans", "threads")),
    ]


class _Workspace(Structure):
    _fields_: ClassVar[Any] = [
        (name, c_void_p)
        for name in (
            "residual",
            "joint",
            "mixed",
            "inner",
            "query",
            "operand",
            "operand_scale",
            "operand_offset",
        )
    ]


class NativeRunner(FusedRunner):
    """The kernels of `kernels/pass.c` over weights in strips. Rows never depend on the rows beside them.

    `kind` is "float32", "bfloat16" or "int8". The residual stream, the norms and the softmax are float32
    in all of them; int8 keeps its cache in bfloat16 where the processor multiplies that. `threads` compute a
    pass: at first as many as torch may use, and never more.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        folder: Path,
        shape: ModelShape,
        kind: str,
        max_context: int | None,
        progress: ProgressCallback | None,
    ) -> None:
        self._library = library
        self._library.private_bytes.restype = self._library.stage_bytes.restype = c_int64
        self._kept: list[torch.Tensor] = []
        self._pages = HugePages()
        narrow = kind == "bfloat16" or (kind == "int8" and "avx512_bf16" in instructions())
        kv_dtype = torch.bfloat16 if narrow else torch.float32
        super().__init__(shape, kind, max_context, kv_dtype, torch.device("cpu"), _up(shape.head_dim, PANEL))
        layers = (_Layer * shape.layers)()
        with WeightFiles(folder) as files, torch.inference_mode():
            embedding = files.embedding
            # A copy, so that the mapped file can go: it would count as this process's memory.
            embedding = embedding.clone() if embedding.dtype == torch.bfloat16 else embedding.float().clone()
            self._model = _Model(
                layers=layers,
                final_norm=self._floats(files.final_norm),
                head=self._matrix(files.head(shape), None),
                n_layers=shape.layers,
                hidden=shape.hidden,
                hidden_stride=_up(shape.hidden, PANEL),
                heads=shape.heads,
                kv_heads=shape.kv_heads,
                head_dim=shape.head_dim,
                head_stride=_up(shape.head_dim, PANEL),
                kind=KINDS[kind],
                kv_kind=KINDS["bfloat16" if narrow else "float32"],
                eps=shape.eps,
            )
            name = "embedding" if embedding.dtype == torch.bfloat16 else "embedding32"
            setattr(self._model, name, self._keep(embedding))
            cos, sin = shape.rope_tables(self.max_context)
            self._model.cos, self._model.sin = self._floats(cos), self._floats(sin)
            for index, layer in enumerate(files.layers(shape)):
                self._fill(layers[index], layer)
                if progress is not None:
                    progress(Progress("load", folder.name, index + 1, shape.layers, "tensors"))
        self.threads = torch.get_num_threads()
        self._make_workspace()
        self._measure_room()

    def _keep(self, tensor: torch.Tensor) -> int:
        """The address of the tensor's numbers, which live as long as the runner."""
        tensor = tensor.contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()

    def _floats(self, tensor: torch.Tensor, length: int = 0) -> int:
        flat = tensor.float().flatten()
        return self._keep(torch.nn.functional.pad(flat, (0, max(0, length - len(flat)))).clone())

    def _fill(self, to: _Layer, layer: LayerWeights) -> None:
        to.input_norm, to.post_norm = self._floats(layer.input_norm), self._floats(layer.post_norm)
        if layer.q_norm is not None and layer.k_norm is not None:
            to.q_norm, to.k_norm = self._floats(layer.q_norm), self._floats(layer.k_norm)
        to.qkv = self._matrix(layer.qkv, layer.qkv_bias)
        to.output = self._matrix(layer.output, layer.output_bias)
        bias = layer.gate_up_bias
        to.gate_up = self._matrix(_interleave(layer.gate_up), None if bias is None else _interleave(bias))
        to.down = self._matrix(layer.down, layer.down_bias)

    def _matrix(self, weight: torch.Tensor, bias: torch.Tensor | None) -> _Matrix:
        outputs = _up(len(weight), STRIP)
        made = _Matrix(outputs=len(weight), inputs=_up(weight.shape[1], PANEL))
        strips, scale = pack(self._library, weight, self.kind, self._pages)
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
            "residual": model.hidden_stride * 4,
            "joint": _up(self.shape.qkv_width, PANEL) * 4,
            "mixed": layer.output.inputs * 4,
            "inner": layer.down.inputs * 4,
            "query": query * 4,
            "operand": widest * 4,
            "operand_scale": widest // GROUP * 4,
            "operand_offset": widest // GROUP * 4,
        }
        self._workspace = _Workspace(
            **{name: self._buffer(PASS_ROWS * bytes_) for name, bytes_ in widths.items()}
        )
        self._stages = self._buffer(self._library.stage_bytes(self.shape.layers))
        self._private = self._buffer(self.threads * self._library.private_bytes(ctypes.byref(model)))

    def _buffer(self, count: int) -> int:
        return self._keep(self._pages.take(count))

    def _compute(self, rows: Rows, logits: torch.Tensor) -> None:
        tokens = (c_int64 * len(rows.tokens))(*rows.tokens)
        positions = (c_int32 * len(rows.positions))(*rows.positions)
        wanted = (c_int32 * len(rows.wanted))(*rows.wanted)
        spans = (_Span * len(rows.spans))()
        for to, span in zip(spans, rows.spans, strict=True):
            cache = self.kv[span.slot]
            to.cache, to.capacity = cache.data_ptr(), cache.shape[3]
            to.start, to.first_row, to.rows = span.start, span.first_row, span.rows
        step = _Pass(
            tokens=ctypes.addressof(tokens),
            positions=ctypes.addressof(positions),
            wanted=ctypes.addressof(wanted),
            spans=ctypes.addressof(spans),
            logits=logits.data_ptr(),
            rows=len(rows.tokens),
            n_wanted=len(rows.wanted),
            n_spans=len(rows.spans),
            threads=self.threads,
        )
        self._library.forward(
            ctypes.byref(self._model),
            ctypes.byref(self._workspace),
            ctypes.byref(step),
            c_void_p(self._stages),
            c_void_p(self._private),
        )


def multiply(library: ctypes.CDLL, weight: torch.Tensor, kind: str, rows: int) -> Callable[[], None]:
    """One product of `rows` rows with `weight`, ready to be run and timed; sizes are whole strips."""
    strips, scale = pack(library, weight, kind, HugePages())
    outputs, inputs = weight.shape
    x, operand, scales, offsets = (torch.zeros(rows, inputs) for _ in range(4))
    out, stages = torch.zeros(rows, outputs), torch.zeros(PANEL)

    def run() -> None:
        matrix = _Matrix(strips=strips.data_ptr(), outputs=outputs, inputs=inputs)
        if scale is not None:
            matrix.scale = scale.data_ptr()
        workspace = _Workspace(
            operand=operand.data_ptr(), operand_scale=scales.data_ptr(), operand_offset=offsets.data_ptr()
        )
        library.multiply(
            ctypes.byref(matrix),
            KINDS[kind],
            ctypes.byref(workspace),
            c_void_p(x.data_ptr()),
            rows,
            c_void_p(out.data_ptr()),
            c_void_p(stages.data_ptr()),
            torch.get_num_threads(),
        )

    return run


def pack(
    library: ctypes.CDLL, weight: torch.Tensor, kind: str, pages: HugePages
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The matrix `[outputs, inputs]` as strips of 32 outputs by steps of 4 bytes; int8 with its scales.

    int8 is symmetric with one scale an output, stored with 128 added.
    """
    weight = (weight if weight.dtype == torch.bfloat16 else weight.float()).contiguous()
    outputs, inputs = _up(weight.shape[0], STRIP), _up(weight.shape[1], PANEL)
    size = {"float32": 4, "bfloat16": 2, "int8": 1}[kind]
    strips = pages.take(outputs * inputs * size)
    scale = torch.empty(outputs) if kind == "int8" else None
    library.pack(
        c_void_p(weight.data_ptr()),
        weight.dtype == torch.bfloat16,
        KINDS[kind],
        *weight.shape,
        inputs,
        c_void_p(strips.data_ptr()),
        None if scale is None else c_void_p(scale.data_ptr()),
        torch.get_num_threads(),
    )
    return strips, scale


def _interleave(joint: torch.Tensor) -> torch.Tensor:
    """Gate above up, as 16 rows of the one before 16 rows of the other, padded to whole strips."""
    gate, up = (_padded(half) for half in joint.chunk(2))
    return torch.cat([gate, up], dim=1).flatten(0, 1)


def _padded(half: torch.Tensor) -> torch.Tensor:
    tail = half.new_zeros(_up(len(half), 16) - len(half), *half.shape[1:])
    return torch.cat([half, tail]).view(-1, 16, *half.shape[1:])


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
