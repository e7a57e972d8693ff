"""How often each kind of guess came true: the learnt side of choosing and trusting drafts.

A guess is described by a key (its source first, then small integers such as the bucketed length of the
match). Rates are Beta-smoothed towards a prior and forget slowly, so that a change of text is noticed.
Guesses are scored against what the target wrote whether or not they were drafted: learning that a
source is useless, or useful again, costs no verification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Key = tuple[str | int, ...]

STRENGTH = 6.0
"""Weight of the prior, in observations."""
MEMORY = 160.0
"""Observations after which older ones count half."""
DEFAULT_RATE = 0.3
"""Prior rate of a key that no prior names."""


def bucket(value: int) -> int:
    """0, 1, 2, 3, 4, then growing steps: 5-6, 7-9, 10-15, 16-31, 32-63, 64-."""
    if value < 5:
        return max(0, value)
    if value < 16:
        return 5 if value < 7 else 6 if value < 10 else 7
    return 8 if value < 32 else 9 if value < 64 else 10


class AcceptanceTable:
    """Rates by key; share one between requests to carry over what was learnt. Not thread-safe."""

    __slots__ = ("_counts", "_priors")

    def __init__(self, priors: Mapping[Key, float] | None = None) -> None:
        self._priors = dict(priors or {})
        self._counts: dict[Key, list[float]] = {}

    def rate(self, key: Key) -> float:
        """Estimated probability that a guess of this kind is right, strictly between 0 and 1."""
        entry = self._counts.get(key)
        if entry is None:
            entry = self._open(key)
        return entry[0] / entry[1]

    def _open(self, key: Key) -> list[float]:
        prior = self._priors.get(key)
        shorter = key
        while prior is None and len(shorter) > 1:
            shorter = shorter[:-1]
            prior = self._priors.get(shorter)
        if prior is None:
            prior = DEFAULT_RATE
        entry = [prior * STRENGTH, STRENGTH]
        self._counts[key] = entry
        return entry

    def update(self, key: Key, hit: bool) -> None:
        """Count one guess of this kind."""
        entry = self._counts.get(key)
        if entry is None:
            entry = self._open(key)
        if entry[1] > MEMORY:
            entry[0] *= 0.5
            entry[1] *= 0.5
        if hit:
            entry[0] += 1.0
        entry[1] += 1.0

    def to_dict(self) -> dict[str, list[float]]:
        """Plain data: key parts joined by `/`, each with (hits, tries)."""
        return {"/".join(map(str, key)): list(entry) for key, entry in self._counts.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], priors: Mapping[Key, float] | None = None) -> AcceptanceTable:
        """Read what `to_dict` wrote; raises ValueError on anything else."""
        table = cls(priors)
        for name, pair in data.items():
            hits, tries = float(pair[0]), float(pair[1])
            if not 0 <= hits <= tries or tries <= 0:
                raise ValueError(f"acceptance entry {name!r} is not (hits, tries); delete the saved table")
            key = tuple(int(part) if part.lstrip("-").isdigit() else part for part in name.split("/"))
            table._counts[key] = [hits, tries]
        return table
