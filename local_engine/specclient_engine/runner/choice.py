"""Which kernels and which kind of number a model runs with: measured, not guessed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import torch

from .base import Dtype, Kind
from .linear import make_linear
from .native_build import instructions
from .native_kernels import multiply

ROWS = 16
SIZE = (4096, 1024)
REPEATS = 8
CLEARLY = 0.8
"""Share of the first candidate's time below which another takes its place: a busy moment decides nothing."""


class Choice(NamedTuple):
    """The kind of number, and whether the compiled kernels compute it."""

    kind: Kind
    native: bool


def choose(dtype: Dtype, library: ctypes.CDLL | None) -> Choice:
    """The quickest way to compute `dtype`; "auto" is the quickest of those that keep the model's answers.

    What is timed is one product of sixteen rows, a short draft, for some milliseconds. int8 is quicker
    still and only by request: it changes about one token in a hundred, and a file that comes out
    differently is often a longer one. Where the processor multiplies tiles of bfloat16 (AMX), which the
    kernels do not use, the framework may win. Where times are close it is the first candidate, bfloat16 for
    "auto", so that the same machine gives the same answers from load to load.
    """
    candidates = _candidates(dtype, library is not None)
    if len(candidates) == 1:
        return candidates[0]
    weight = torch.randn(SIZE, generator=torch.Generator().manual_seed(0))
    work = {choice: _product(choice, library, weight) for choice in candidates}
    seconds = dict.fromkeys(candidates, float("inf"))
    # In turns, and the least of each: noise only ever adds, and a slow moment meets all.
    for _ in range(REPEATS):
        for choice, run in work.items():
            began = perf_counter()
            run()
            seconds[choice] = min(seconds[choice], perf_counter() - began)
    quickest = min(seconds, key=lambda choice: seconds[choice])
    return quickest if seconds[quickest] < CLEARLY * seconds[candidates[0]] else candidates[0]


def _candidates(dtype: Dtype, compiled: bool) -> list[Choice]:
    kinds: tuple[Kind, ...] = ("bfloat16", "float32") if dtype == "auto" else (dtype,)
    first = [Choice(kind, compiled) for kind in kinds]
    tiles = compiled and "amx_bf16" in instructions() and "bfloat16" in kinds
    return [*first, Choice("bfloat16", False)] if tiles else first


def _product(choice: Choice, library: ctypes.CDLL | None, weight: torch.Tensor) -> Callable[[], object]:
    if choice.native and library is not None:
        return multiply(library, weight, choice.kind, ROWS)
    product = make_linear(weight, None, choice.kind)
    x = torch.ones(ROWS, weight.shape[1], dtype=getattr(torch, choice.kind))
    return lambda: product(x)
