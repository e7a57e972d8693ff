"""What a pass costs on this machine, as a curve over rows and context.

Pure arithmetic over measured samples: who measures is the runner, who decides with it is
`draft_length`. Time linear in the rows of a pass and in its cached context is the model of SmartSpec
(arXiv 2406.14066); measured knots take the place of the line where kernels make steps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CHEAPER, DEARER = 0.1, 0.05
"""Weight of an observation in a knot's moving average. Noise only adds: what came out dear tells less."""
BELIEVED_CHEAPER, BELIEVED_DEARER = 1.0, 0.3
"""The same for a knot that is only a belief."""
STALE = 64
"""Passes without its row count after which a knot is only a belief."""
PACE = 0.1
"""Weight of an observation in the machine's pace."""
OUTLIER, STALL = 3.0, 1.5
"""An observation this many times off the curve moves a knot, or the pace, only as far as this."""


@dataclass(slots=True)
class CostCurve:
    """Seconds of one pass: measured knots over rows, plus a linear part for attention.

    `rows` ascending, `base_seconds` the cost of each at an empty context; between knots the curve is
    linear, before the first it is flat, beyond the last it goes on with the last slope.
    `per_context` is seconds per cached token and pass, `per_row_context` per cached token and row.

    `pace` is how slow the machine is now, 1.0 at the time of measuring. A busy machine slows every pass:
    if only the row counts in use learnt of it, the others would look cheap by comparison, and dear when
    it is quiet again.
    """

    rows: list[int]
    base_seconds: list[float]
    per_context: float = 0.0
    per_row_context: float = 0.0
    pace: float = field(init=False, default=1.0)
    _slope: float = field(init=False, default=0.0)
    _unpaid: list[int] = field(init=False, default_factory=list)
    """Passes since each knot was last refined; what was measured at load was never paid in serving."""

    def __post_init__(self) -> None:
        if not self.rows or len(self.rows) != len(self.base_seconds):
            raise ValueError("a cost curve needs as many costs as row counts, and at least one of each")
        if any(b <= a for a, b in zip(self.rows, self.rows[1:], strict=False)) or self.rows[0] < 1:
            raise ValueError("the row counts of a cost curve must ascend from 1 or more")
        if min(self.base_seconds) <= 0:
            raise ValueError("every cost of a cost curve must be positive")
        self._unpaid = [STALE] * len(self.rows)
        self._tail()

    def _tail(self) -> None:
        if len(self.rows) == 1:
            self._slope = self.base_seconds[0] / self.rows[0]
        else:
            rise = self.base_seconds[-1] - self.base_seconds[-2]
            self._slope = max(0.0, rise / (self.rows[-1] - self.rows[-2]))

    def seconds(self, rows: int, context: int) -> float:
        """Estimated seconds of a pass over `rows` new tokens with `context` tokens cached."""
        return self.pace * (self._base(rows) + context * (self.per_context + self.per_row_context * rows))

    def _base(self, rows: int) -> float:
        knots, costs = self.rows, self.base_seconds
        if rows <= knots[0]:
            return costs[0]
        if rows >= knots[-1]:
            return costs[-1] + self._slope * (rows - knots[-1])
        right = bisect_left(knots, rows)
        left = right - 1
        share = (rows - knots[left]) / (knots[right] - knots[left])
        return costs[left] + share * (costs[right] - costs[left])

    def observe(self, rows: int, context: int, seconds: float) -> None:
        """Refine the pace, and the knots around `rows`, with a measured pass."""
        expected = self.seconds(rows, context)
        if seconds <= 0 or rows < 1:
            return
        ratio = _within(OUTLIER, seconds / expected)
        right = min(bisect_left(self.rows, rows), len(self.rows) - 1)
        left = right if self.rows[right] <= rows else max(0, right - 1)
        span = self.rows[right] - self.rows[left]
        share = (rows - self.rows[left]) / span if span else 1.0
        for knot, weight in ((left, 1.0 - share), (right, share)):
            stale = self._unpaid[knot] >= STALE
            cheaper, dearer = (BELIEVED_CHEAPER, BELIEVED_DEARER) if stale else (CHEAPER, DEARER)
            step = weight * (cheaper if ratio < 1.0 else dearer)
            self.base_seconds[knot] *= 1.0 + step * (ratio - 1.0)
            if not stale:  # a stale knot's error is its own, not the machine's
                self.pace *= 1.0 + PACE * weight * (_within(STALL, ratio) - 1.0)
        self._unpaid = [passes + 1 for passes in self._unpaid]
        paid = right if share >= 0.5 else left
        self._unpaid[paid] = 0
        self._bound_beliefs(paid)
        self._tail()

    def _bound_beliefs(self, paid: int) -> None:
        """What was just paid bounds beliefs: fewer rows take no longer, twice as many at most twice."""
        for knot, rows in enumerate(self.rows):
            if self._unpaid[knot] >= STALE:
                share = max(1.0, rows / self.rows[paid])
                self.base_seconds[knot] = min(self.base_seconds[knot], share * self.base_seconds[paid])

    def probe(self, rows: int) -> int | None:
        """The next row count above `rows` whose cost is only a belief; None where it was paid of late.

        Costs are refined where they are paid. One that was measured in a busy moment would keep its row
        count from ever being tried again.
        """
        above = bisect_right(self.rows, rows)
        return self.rows[above] if above < len(self.rows) and self._unpaid[above] >= STALE else None

    @classmethod
    def linear(cls, floor: float, fixed: float, per_row: float, max_rows: int = 1024) -> CostCurve:
        """The curve max(floor, fixed + per_row * rows), all in seconds."""
        if per_row <= 0:
            raise ValueError("per_row must be positive: more rows cannot cost less")
        knee = (floor - fixed) / per_row
        knots = sorted({1, max_rows, *(r for r in (int(knee), int(knee) + 1) if 1 <= r < max_rows)})
        return cls(knots, [max(floor, fixed + per_row * rows) for rows in knots])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `from_dict` reads it."""
        return {
            "rows": list(self.rows),
            "base_seconds": [self.pace * seconds for seconds in self.base_seconds],
            "per_context": self.pace * self.per_context,
            "per_row_context": self.pace * self.per_row_context,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CostCurve:
        """Read what `to_dict` wrote; raises ValueError on anything else."""
        try:
            return cls(
                [int(r) for r in data["rows"]],
                [float(s) for s in data["base_seconds"]],
                float(data.get("per_context", 0.0)),
                float(data.get("per_row_context", 0.0)),
            )
        except (KeyError, TypeError) as problem:
            raise ValueError(f"not a cost curve: {problem!r}; measure the machine again") from problem


def _within(factor: float, ratio: float) -> float:
    """`ratio`, or the nearest that is no further than `factor` from one."""
    return min(factor, max(1 / factor, ratio))
