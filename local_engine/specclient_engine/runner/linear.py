"""Matrix products with weights laid out once, at load.

Every row of a product is computed independently of the rows beside it: a draft that is verified in a
block sees the same numbers as one token alone. oneDNN splits the reduction of a single row over
threads where that of several is not split, hence a lone row is computed twice.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

import torch
import torch.nn.functional as F


class Linear(Protocol):
    """`x @ weight.T + bias` for `x` of `[rows, in]`."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...


class PlainLinear:
    """The framework's own product: where nothing better is known."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(_at_least_two(x), self._weight, self._bias)[: x.shape[0]]


class PrepackedLinear:
    """oneDNN's blocked weight layout, as torch.compile's freezing makes it.

    The operators are private to torch: `make_linear` falls back to `PlainLinear` where they are missing.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 16)
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            _at_least_two(x), self._packed, self._bias, "none", [], ""
        )
        return out[: x.shape[0]]


def make_linear(weight: torch.Tensor, bias: torch.Tensor | None, kind: str) -> Linear:
    """The fastest product for `kind`, the name of a float dtype, on the weight's device."""
    dtype: torch.dtype = getattr(torch, kind)
    weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    if weight.device.type == "cpu" and hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        # oneDNN refuses bfloat16 on processors without instructions for it.
        with suppress(RuntimeError):
            return PrepackedLinear(weight, bias)
    return PlainLinear(weight, bias)


def _at_least_two(x: torch.Tensor) -> torch.Tensor:
    return x.expand(2, -1).contiguous() if x.shape[0] == 1 else x
