"""Medians with confidence intervals, by resampling (Efron's percentile bootstrap)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

RESAMPLES = 1000
LEVEL = 0.95
FEWEST = 5
"""With fewer values an interval would be a guess: none is given."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median of `count` values with its interval; low and high are None where there are too few."""

    value: float
    low: float | None
    high: float | None
    count: int


def estimate(values: Sequence[float], *, seed: int = 0) -> Estimate | None:
    """The median of `values` and its interval; None for no values."""
    return clustered({str(number): [value] for number, value in enumerate(values)}, seed=seed)


def clustered(values: Mapping[str, Sequence[float]], *, seed: int = 0) -> Estimate | None:
    """The same for values in groups that are not independent, as repeats of one case are.

    Whole groups are drawn, and then values within them, so that ten repeats of one case do not count as
    ten cases.
    """
    groups = [list(group) for group in values.values() if group]
    flat = [value for group in groups for value in group]
    if not flat:
        return None
    middle = median(flat)
    if len(flat) < FEWEST:
        return Estimate(middle, None, None, len(flat))
    draw = random.Random(seed)
    medians = sorted(median(_resample(groups, draw)) for _ in range(RESAMPLES))
    cut = int((1 - LEVEL) / 2 * RESAMPLES)
    return Estimate(middle, medians[cut], medians[-1 - cut], len(flat))


def crossed(values: Sequence[tuple[str, str, float]], *, seed: int = 0) -> Estimate | None:
    """The same for (case, block, value): calls that ran at the same moment are no more independent of each
    other than repeats of one case are. The wider end of both intervals counts.
    """
    found = [clustered(_by(values, place), seed=seed) for place in (0, 1)]
    if any(each is None or each.low is None or each.high is None for each in found):
        return found[0]
    lows, highs = zip(*((each.low, each.high) for each in found if each), strict=True)
    first = found[0]
    assert first is not None
    return Estimate(first.value, min(lows), max(highs), first.count)


def _by(values: Sequence[tuple[str, str, float]], place: int) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for value in values:
        groups.setdefault(str(value[place]), []).append(value[2])
    return groups


def _resample(groups: Sequence[Sequence[float]], draw: random.Random) -> list[float]:
    chosen = draw.choices(groups, k=len(groups)) if len(groups) > 1 else groups
    return [value for group in chosen for value in draw.choices(group, k=len(group))]
