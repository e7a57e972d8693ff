"""What a drafting model costs, how often it is right, and whether its next token pays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specclient_engine.api import CostModel
from specclient_engine.proposers import AcceptanceTable
from specclient_engine.sampling import Row, soften

PROBE = 32
"""After so many steps without a draft one is made anyway, to learn whether it would pay again."""


class Economy:
    """Shared by all requests of an engine. `target` is the cost of the target's passes.

    A drafted token's chance is learnt per tenth of the probability that the drafting model itself gives
    it: models are surer of themselves than they should be, and each in its own way.
    """

    def __init__(self, source: str, target: CostModel) -> None:
        self.source = source
        self.seconds = 0.0
        self._target = target
        priors: dict[tuple[str | int, ...], float] = {(source,): 0.6}
        self._table = AcceptanceTable(priors | {(source, tenth): (tenth + 0.5) / 10 for tenth in range(10)})

    @property
    def overall(self) -> float:
        """How often a drafted token was right, whatever was thought of it."""
        return self._table.rate((self.source,))

    def tenth(self, row: Row, token: int) -> int:
        """The tenth, 0 to 9, that the probability of `token` in `row` falls into."""
        weights, _ = soften(row, 1.0)
        return min(9, int(10 * float(weights[token]) / float(weights.sum(dtype=np.float64))))

    def rate(self, tenth: int) -> float:
        """The chance of a token of this tenth, given that all before it were right."""
        return self._table.rate((self.source, tenth))

    def learn(self, tenths: Sequence[int], agreed: int) -> None:
        """The first `agreed` tokens of a draft were right; the next, if there is one, was wrong."""
        for index, tenth in enumerate(tenths[: agreed + 1]):
            self._table.update((self.source, tenth), index < agreed)
            self._table.update((self.source,), index < agreed)

    def timed(self, seconds: float) -> None:
        """Drafting one token took so long."""
        self.seconds = seconds if self.seconds == 0.0 else 0.9 * self.seconds + 0.1 * seconds

    def pays(self, chance: float, drafted: int, context: int) -> bool:
        """Whether one more token, right with this `chance`, saves more of passes than it costs."""
        row = self._target.seconds(drafted + 2, context) - self._target.seconds(drafted + 1, context)
        return chance * self._target.seconds(1, context) > self.seconds + row
