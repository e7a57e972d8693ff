"""How far a guess may be believed once all the others have been heard.

Several guessers look at the same place; each has its own rate of being right. A small logistic model
per kind of guess, trained online, turns (its rate, how much others support it, how strong its best
rival is) into one probability: context mixing in the logistic domain, as in Mahoney's PAQ ("Adaptive
Weighing of Context Models for Lossless Data Compression", 2005).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Any

START = (0.0, 0.85, 0.15, -0.15)
"""Weights of an unseen kind: bias, own log-odds, support, rival."""
STEP = 0.01
DAMPING = (1.0, 0.3, 0.1, 0.1)
"""Learning rate, and its share for each weight: the features differ in scale."""
SHIFT = 3.5
"""Support and rivals count from the log-odds -SHIFT (a rate of 3 %) up."""
MOST_SUPPORT = 8.0
EXTREME = 9.0
NEVER = 0.0005
"""No guess is believed less than this, or more than all but this."""

Features = tuple[float, float, float]
"""Own log-odds; the others' summed log-odds in favour, shifted; the best rival's, shifted."""


def log_odds(rate: float) -> float:
    """ln(rate / (1 - rate)), with rates held away from 0 and 1."""
    # Comparisons, here and below, as every vote comes by: calls of min() and max() take longer.
    rate = NEVER if rate < NEVER else rate if rate < 1.0 - NEVER else 1.0 - NEVER
    return log(rate / (1.0 - rate))


class Blend:
    """Logistic weights by kind of guess."""

    __slots__ = ("_weights",)

    def __init__(self, weights: Mapping[str, tuple[float, ...]] | None = None) -> None:
        self._weights = {kind: list(values) for kind, values in (weights or {}).items()}

    def probability(self, kind: str, features: Features) -> float:
        """Probability that a guess of this kind is right, strictly between 0 and 1."""
        weights = self._weights.get(kind)
        if weights is None:
            weights = self._weights[kind] = list(START)
        own, support, rival = features
        score = weights[0] + weights[1] * own + weights[2] * support + weights[3] * rival
        score = -EXTREME if score < -EXTREME else score if score < EXTREME else EXTREME
        return 1.0 / (1.0 + exp(-score))

    def update(self, kind: str, features: Features, believed: float, hit: bool) -> None:
        """One step of gradient descent on the log loss of a guess that was believed that much."""
        weights = self._weights[kind]
        step = STEP * (hit - believed)
        own, support, rival = features
        weights[0] += step * DAMPING[0]
        weights[1] += step * DAMPING[1] * own
        weights[2] += step * DAMPING[2] * support
        weights[3] += step * DAMPING[3] * rival

    def to_dict(self) -> dict[str, list[float]]:
        """Plain data, as the constructor reads it."""
        return {kind: list(values) for kind, values in self._weights.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Blend:
        """Read what `to_dict` wrote; raises ValueError on anything else."""
        weights = {kind: tuple(float(value) for value in values) for kind, values in data.items()}
        if any(len(values) != len(START) for values in weights.values()):
            raise ValueError("saved weights have another shape; delete the saved acceptance table")
        return cls(weights)
