"""How many draft tokens to verify: the most expected tokens per second on this machine.

For one request the length k maximises (1 + sum over i<=k of the product of the confidences up to i) /
c(k + 1), with c this machine's measured cost of a pass; the criterion is goodput as in SmartSpec
(arXiv 2406.14066). k = 0 is a legal answer. For a batch the rows are given out one by one to whoever
gains most, as long as the gain is worth its cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from specclient_engine.api import CostModel, Draft

WORTH_A_TRY = 0.6
"""The least chance of the last token of a probe being reached and right."""


class DraftLengthPolicy:
    """Chooses draft lengths with a cost model; holds no state of any request.

    `max_rows` bounds the rows of one pass over all its requests (None: unbounded).
    """

    def __init__(self, cost: CostModel, *, max_rows: int | None = None) -> None:
        self._cost = cost
        self._max_rows = max_rows

    def choose(self, requests: Sequence[tuple[Draft, int]]) -> list[int]:
        """Draft lengths for requests given as (draft, tokens in its cache), in order; 0 is legal."""
        if not requests:
            return []
        lengths = [0] * len(requests)
        context = sum(cached for _, cached in requests) // len(requests)
        room = sum(len(draft.tokens) for draft, _ in requests)
        if self._max_rows is not None:
            room = min(room, self._max_rows - len(requests))
        order = self._by_gain(requests, room)
        rows = len(requests)
        expected = float(rows)
        best, best_count = expected / self._cost.seconds(rows, context), 0
        for count, (_, gain) in enumerate(order, start=1):
            expected += gain
            rate = expected / self._cost.seconds(rows + count, context)
            if rate > best:
                best, best_count = rate, count
        if len(requests) == 1:
            best_count = self._with_probe(best_count, order)
        for index, _ in order[:best_count]:
            lengths[index] += 1
        return lengths

    def _with_probe(self, count: int, order: Sequence[tuple[int, float]]) -> int:
        """`count`, or a length that is worth a try because nobody knows what it costs by now.

        It is likely to be right to its end, and twice the rows take at most twice as long, so a try that
        does not pay loses little; and a cost that was tried is known for the next `STALE` passes.
        """
        probe = self._cost.probe(count + 1)
        if probe is None or probe - 1 > len(order) or order[probe - 2][1] < WORTH_A_TRY:
            return count
        return probe - 1

    @staticmethod
    def _by_gain(requests: Sequence[tuple[Draft, int]], room: int) -> list[tuple[int, float]]:
        """The first `room` draft tokens of all requests by falling chance of being reached and right."""
        if len(requests) == 1:
            survival = accumulate(requests[0][0].confidence[: max(0, room)], mul)
            return [(0, chance) for chance in survival]
        heap = []
        for index, (draft, _) in enumerate(requests):
            if draft.confidence:
                heap.append((-draft.confidence[0], index, 0))
        heapq.heapify(heap)
        order: list[tuple[int, float]] = []
        while heap and len(order) < room:
            negative, index, position = heapq.heappop(heap)
            order.append((index, -negative))
            confidence = requests[index][0].confidence
            if position + 1 < len(confidence):
                heapq.heappush(heap, (negative * confidence[position + 1], index, position + 1))
        return order
