"""The kernels' own nouns (`kernels/nouns.h`) for ctypes, and what can be done with a single matrix."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from typing import Any, ClassVar

import torch

from .base import BYTES, Kind
from .pages import HugePages

STRIP = 32
PANEL = 64
GROUP = 64
KINDS: dict[Kind, int] = {"float32": 0, "bfloat16": 1, "int8": 2}


class Matrix(Structure):
    """A matrix in strips."""

    _fields_: ClassVar[Any] = [
        ("strips", c_void_p),
        ("scale", c_void_p),
        ("bias", c_void_p),
        ("outputs", c_int32),
        ("inputs", c_int32),
    ]


class Layer(Structure):
    """One block's weights."""

    _fields_: ClassVar[Any] = [
        *((name, c_void_p) for name in ("input_norm", "q_norm", "k_norm", "post_norm")),
        *((name, Matrix) for name in ("qkv", "output", "gate_up", "down")),
    ]


class Model(Structure):
    """The whole model."""

    _fields_: ClassVar[Any] = [
        ("layers", POINTER(Layer)),
        *((name, c_void_p) for name in ("final_norm", "cos", "sin")),
        *((name, Matrix) for name in ("embedding", "head")),
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


class Span(Structure):
    """Rows of one sequence, and its cache."""

    _fields_: ClassVar[Any] = [
        ("cache", c_void_p),
        ("capacity", c_int64),
        *((name, c_int32) for name in ("start", "first_row", "rows", "pad")),
    ]


class Pass(Structure):
    """What one pass computes."""

    _fields_: ClassVar[Any] = [
        *((name, c_void_p) for name in ("tokens", "positions", "spans", "logits")),
        *((name, c_int32) for name in ("rows", "n_wanted", "n_spans", "threads")),
    ]


class Workspace(Structure):
    """Buffers of one pass."""

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


class Weights:
    """A matrix as the addresses of its rows: what lies apart is packed as one without being copied together.

    `parts` are `[outputs, inputs]` each, below one another. `rows` may be put in another order before it is
    packed; an address of 0 is a row of zeros.
    """

    def __init__(self, *parts: torch.Tensor) -> None:
        bf16 = all(part.dtype == torch.bfloat16 for part in parts)
        self._parts = [(part if bf16 else part.float()).contiguous() for part in parts]
        self.dtype = self._parts[0].dtype
        self.width = self._parts[0].shape[1]
        step = self.width * self.dtype.itemsize
        self.rows = torch.cat([part.data_ptr() + step * torch.arange(len(part)) for part in self._parts])


def multiply(library: ctypes.CDLL, weight: torch.Tensor, kind: Kind, rows: int) -> Callable[[], None]:
    """One product of `rows` rows with `weight`, ready to be run and timed; sizes are whole strips."""
    strips, scale = pack(library, Weights(weight), kind, HugePages())
    outputs, inputs = weight.shape
    x, operand, scales, offsets = (torch.zeros(rows, inputs) for _ in range(4))
    out, stages = torch.zeros(rows, outputs), torch.zeros(PANEL)

    def run() -> None:
        matrix = Matrix(strips=strips.data_ptr(), outputs=outputs, inputs=inputs)
        if scale is not None:
            matrix.scale = scale.data_ptr()
        workspace = Workspace(
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
    library: ctypes.CDLL, weights: Weights, kind: Kind, pages: HugePages
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The matrix as strips of 32 outputs by steps of 4 bytes; int8 with its scales, computed by this thread.

    int8 is symmetric with one scale an output.
    """
    outputs, inputs = round_up(len(weights.rows), STRIP), round_up(weights.width, PANEL)
    strips = pages.take(outputs * inputs * BYTES[kind])
    scale = torch.empty(outputs) if kind == "int8" else None
    library.pack(
        c_void_p(weights.rows.data_ptr()),
        weights.dtype == torch.bfloat16,
        KINDS[kind],
        len(weights.rows),
        weights.width,
        inputs,
        c_void_p(strips.data_ptr()),
        None if scale is None else c_void_p(scale.data_ptr()),
    )
    return strips, scale


def round_up(value: int, step: int) -> int:
    """The least multiple of `step` that holds `value`."""
    return -(-value // step) * step
