"""Randomness as a function of (seed, position, token id): no stream, no state, no order of draws.

Sampling by the Gumbel trick takes the highest of `score + noise`. When the noise of a token depends on
nothing but these three, the token drawn at a position is the same however the positions were grouped
into passes, so speculation cannot change it ("drafter-invariant" speculation, arXiv 2408.07978).
The hash is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
Generators, OOPSLA 2014), used as a counter-based generator.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def gumbel(seed: int, position: int, token_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Standard Gumbel noise for each of `token_ids` at the absolute output `position`."""
    with np.errstate(over="ignore"):
        key = _mix(_mix(np.uint64(seed & 0xFFFFFFFFFFFFFFFF) + _GOLDEN) ^ np.uint64(position) * _GOLDEN)
        bits = _mix(key + (token_ids.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    uniform = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return -np.log(-np.log(uniform))


def _mix(value: npt.NDArray[np.uint64] | np.uint64) -> npt.NDArray[np.uint64] | np.uint64:
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))
