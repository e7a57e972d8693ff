"""How much of one request's draft to verify now, if the passes after this one are chosen as well.

The best expected tokens per second of one pass is not the quickest way through a text: behind a place
where a draft may well be wrong, a short pass that finds out is cheaper than a long one that is mostly
thrown away, since what is right can still be verified in bulk by the next. Wherever the draft turns out
wrong, the text goes on from there all the same; so what counts is the time until the draft is written or
has failed, least by dynamic programming over the places where a pass may end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul

CLOSE = 8
"""Up to here a pass may end behind every token of the draft."""
SPREAD = (10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)
"""Further on it may end here, and on either side of the first doubtful tokens."""
DOUBTFUL = 0.9
MOST_DOUBTS = 6


def planned_length(confidence: Sequence[float], seconds: Callable[[int], float]) -> int:
    """The draft length, 0 to len(confidence), of the first pass of the plan that takes the least time.

    `confidence` is the chance that each token is right if those before it are; `seconds` is the cost of
    a pass by its rows. A bounded number of plans is compared, whatever the draft's length.
    """
    size = len(confidence)
    if not size:
        return 0
    survival = [1.0, *accumulate(confidence, mul)]
    ends = _ends(confidence)
    costs: dict[int, float] = {}

    def cost(rows: int) -> float:
        if rows not in costs:
            costs[rows] = seconds(rows)
        return costs[rows]

    # later[i]: the expected time from ends[i] on, times the chance of getting there. A pass over k tokens
    # brings one more, so it leads k + 1 tokens on; behind the whole draft one more pass is foreseen.
    later = [0.0] * len(ends)
    later[-1] = survival[size] * cost(1)
    for index in range(len(ends) - 2, -1, -1):
        start = ends[index]
        chance = survival[start]
        least = chance * cost(size - start + 1)
        for end, rest in zip(ends[index + 1 :], later[index + 1 :], strict=True):
            least = min(least, chance * cost(end - start) + rest)
        later[index] = least
    best, length = cost(size + 1), size
    for end, rest in zip(ends, later, strict=True):
        if cost(end) + rest < best:
            best, length = cost(end) + rest, end - 1
    return length


def _ends(confidence: Sequence[float]) -> list[int]:
    """Numbers of tokens behind which a pass may end, ascending up to the whole draft."""
    size = len(confidence)
    ends = {*range(1, min(CLOSE, size) + 1), *(end for end in SPREAD if end < size), size}
    doubts = (at for at in range(CLOSE, size) if confidence[at] < DOUBTFUL)
    for at, _ in zip(doubts, range(MOST_DOUBTS), strict=False):
        ends |= {at, at + 1}
    return sorted(ends)
