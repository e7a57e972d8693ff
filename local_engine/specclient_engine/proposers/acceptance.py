"""How often each kind of guess came true: the learnt side of choosing and trusting drafts.

A guess is described by a key: its kind first, then small integers such as the bucketed length of the
match. Rates are Beta-smoothed towards the rate of the shorter key (then of the priors), and forget
slowly, so that a change of text is noticed. Guesses are scored against what the target wrote whether or
not they were drafted: learning that a source is useless, or useful again, costs no verification.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from specclient_engine.proposers.blend import Blend
from specclient_engine.proposers.memory import Memories
from specclient_engine.proposers.priors import shipped

Key = tuple[str | int, ...]

STRENGTH = 4.0
"""Weight of the rate that a new key starts from, in observations."""
MEMORY = 1000.0
"""Observations after which older ones count half."""
ENOUGH = 40.0
"""Observations after which a key no longer teaches the shorter key that it starts from."""
DEFAULT_RATE = 0.3
"""Rate of a guess of which nothing is known."""
STEPS = (0, 1, 2, 3, 4, 5, 5, 6, 6, 6, *(7,) * 6, *(8,) * 16, *(9,) * 32, *(10,) * 64, *(11,) * 128)


def bucket(value: int) -> int:
    """0 to 4 as they are, then 5-6, 7-9, 10-15, 16-31, 32-63, 64-127, 128-255 and 256 up: 0..12."""
    return STEPS[value] if value < 256 else 12


class AcceptanceTable:
    """Rates by key; share one between requests to carry over what was learnt. Not thread-safe.

    `priors` maps keys of any length to rates that hold until something is observed; `blend` is learnt
    beside the rates. None stands for what comes with the package. `memories` hold what was written in the
    requests that share the table, apart by their cache salts, and stay out of `to_dict`. Rates and blend are
    learnt from all requests whatever their salt: keys name kinds of guesses and lengths, never a token, so
    they tell how well guessing went and nothing of the text.
    """

    __slots__ = ("_counts", "_priors", "blend", "memories")

    def __init__(self, priors: Mapping[Key, float] | None = None, blend: Blend | None = None) -> None:
        self._priors = _shipped_rates() if priors is None else dict(priors)
        self._counts: dict[Key, list[float]] = {}
        self.blend = Blend(shipped()[1]) if blend is None else blend
        self.memories = Memories()

    def rate(self, key: Key) -> float:
        """Estimated probability that a guess of this kind is right."""
        entry = self._counts.get(key) or self._open(key)
        return entry[0] / entry[1]

    def _open(self, key: Key) -> list[float]:
        prior = self._priors.get(key)
        if prior is None:
            prior = self.rate(key[:-1]) if len(key) > 1 else DEFAULT_RATE
        entry = self._counts[key] = [prior * STRENGTH, STRENGTH]
        return entry

    def update(self, key: Key, hit: bool) -> None:
        """Count one guess of this kind."""
        while key:
            entry = self._counts.get(key) or self._open(key)
            if entry[1] > MEMORY:
                entry[0] *= 0.5
                entry[1] *= 0.5
            if hit:
                entry[0] += 1.0
            entry[1] += 1.0
            if entry[1] > ENOUGH:
                return
            key = key[:-1]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `counts` by key (parts joined by `/`) as (hits, tries), and `blend`."""
        counts = {"/".join(map(str, key)): list(entry) for key, entry in self._counts.items()}
        return {"counts": counts, "blend": self.blend.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AcceptanceTable:
        """Read what `to_dict` wrote; raises ValueError on anything else."""
        try:
            table = cls(blend=Blend.from_dict(data["blend"]))
            for name, (hits, tries) in data["counts"].items():
                if not 0 <= float(hits) <= float(tries) or float(tries) <= 0:
                    raise ValueError(f"entry {name!r} is not (hits, tries)")
                table._counts[parse_key(name)] = [float(hits), float(tries)]
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise ValueError(f"not an acceptance table: {problem}; delete the saved table") from problem
        return table


@cache
def _shipped_rates() -> Mapping[Key, float]:
    return {parse_key(name): rate for name, rate in shipped()[0].items()}


def parse_key(name: str) -> Key:
    """The key that `AcceptanceTable.to_dict` wrote as `name`."""
    return tuple(int(part) if part.isdigit() else part for part in name.split("/"))
