"""From timed passes to a cost curve that is plausible, however busy the machine was while they were timed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from specclient_engine.cost import CostCurve

Samples = Mapping[tuple[int, int], float]
"""Least seconds by (rows, cached context)."""


def fit_curve(
    samples: Iterable[tuple[int, int, float]],
    *,
    knots: Sequence[int] = (),
    dearest_context: float = float("inf"),
) -> CostCurve:
    """Fits (rows, context, seconds) samples; row counts of `knots` without a sample get a belief.

    Noise on a busy machine only ever adds, so the smallest of repeated timings is nearest to the cost, and
    every timing bounds the costs beside it: a row more is never cheaper, the next row costs at least what
    the last one did, and a pass of twice the rows is never dearer than two passes.

    `dearest_context` is how many cached tokens may at most cost a row as much again as its own computation,
    and a pass half of what one row costs. Without it a difference of two noisy timings, drawn out to the
    end of a long context, would shorten every draft.
    """
    best = least_of(samples)
    if not best:
        raise ValueError("no cost samples were given: measure at least one pass")
    nearest = {rows: min(c for r, c in best if r == rows) for rows, _ in best}
    slopes = _context_slopes(best, nearest)
    measured = sorted(nearest)
    costs = [_at_no_context(best, rows, nearest[rows], slopes) for rows in measured]
    measured, costs = _with_beliefs(measured, costs, knots)
    costs = _bounded(measured, costs)
    per_context, per_row = slopes
    if len(measured) > 1 and dearest_context < float("inf"):
        a_row = (costs[-1] - costs[0]) / (measured[-1] - measured[0])
        per_context = min(per_context, costs[0] / 2 / dearest_context)
        per_row = min(per_row, a_row / dearest_context)
    return CostCurve(measured, costs, per_context, per_row)


def least_of(samples: Iterable[tuple[int, int, float]]) -> Samples:
    """The least seconds of each kind of pass."""
    best: dict[tuple[int, int], float] = {}
    for rows, context, seconds in samples:
        key = (rows, context)
        best[key] = min(seconds, best.get(key, seconds))
    return best


def _with_beliefs(
    measured: Sequence[int], costs: Sequence[float], knots: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Between timings as the line between them has it; beyond the last in proportion to the rows."""
    timed = CostCurve(list(measured), list(costs))
    last = measured[-1]
    rows = sorted({*measured, *knots})
    return rows, [timed.seconds(count, 0) if count <= last else costs[-1] * count / last for count in rows]


def _at_no_context(best: Samples, rows: int, context: int, slopes: tuple[float, float]) -> float:
    seconds = best[rows, context]
    return max(seconds * 0.05, seconds - context * (slopes[0] + slopes[1] * rows))


def _bounded(rows: Sequence[int], costs: Sequence[float]) -> list[float]:
    """The greatest costs that no timing contradicts: never falling, convex, at most proportional to rows."""
    costs = list(costs)
    for left in reversed(range(len(costs) - 1)):
        costs[left] = min(costs[left], costs[left + 1])
    for right in range(1, len(costs)):
        costs[right] = min(costs[right], costs[right - 1] * rows[right] / rows[right - 1])
    return [_lowest_chord(rows, costs, at) for at in range(len(costs))]


def _lowest_chord(rows: Sequence[int], costs: Sequence[float], at: int) -> float:
    chords = [
        costs[a] + (rows[at] - rows[a]) / (rows[b] - rows[a]) * (costs[b] - costs[a])
        for a in range(at)
        for b in range(at + 1, len(rows))
    ]
    return min([costs[at], *chords])


def _context_slopes(best: Samples, nearest: Mapping[int, int]) -> tuple[float, float]:
    """(per_context, per_row_context) by least squares over the samples' growth with context."""
    points: list[tuple[float, float, float]] = []
    for (rows, context), seconds in best.items():
        grown = context - nearest[rows]
        if grown > 0:
            points.append((float(grown), float(grown * rows), seconds - best[rows, nearest[rows]]))
    if not points:
        return 0.0, 0.0
    aa = sum(a * a for a, _, _ in points)
    ab = sum(a * b for a, b, _ in points)
    bb = sum(b * b for _, b, _ in points)
    ay = sum(a * y for a, _, y in points)
    by = sum(b * y for _, b, y in points)
    determinant = aa * bb - ab * ab
    if determinant > 1e-9 * aa * bb:
        per_context = (ay * bb - by * ab) / determinant
        per_row = (by * aa - ay * ab) / determinant
        if per_context >= 0 and per_row >= 0:
            return per_context, per_row
    return _one_slope(points, aa, bb, ay, by)


def _one_slope(
    points: Sequence[tuple[float, float, float]], aa: float, bb: float, ay: float, by: float
) -> tuple[float, float]:
    """The better of the two single slopes, when both together would make one negative."""
    candidates = [(max(0.0, ay / aa), 0.0), (0.0, max(0.0, by / bb))]

    def error(slopes: tuple[float, float]) -> float:
        return sum((y - slopes[0] * a - slopes[1] * b) ** 2 for a, b, y in points)

    return min(candidates, key=error)
