"""Seconds per token of calls with and without their prediction, and what the difference is worth.

Calls differ in length, so what is compared is a ratio of sums, Σ seconds / Σ tokens, whose variance
follows by linearisation (Cochran, Sampling Techniques, 3rd ed., 6.4). Sums fade by a factor at each new
call and with time, so that seven numbers hold the evidence and old evidence is forgotten. Intervals are
Student's, with Welch's degrees of freedom for a difference; all are at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

CONFIDENCE = 0.95
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and where it lies with 95 % confidence."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The fading sums of one kind of call: weights, tokens (t), seconds (s) and extra money (m)."""

    n: float = 0.0
    n2: float = 0.0
    t: float = 0.0
    s: float = 0.0
    tt: float = 0.0
    st: float = 0.0
    ss: float = 0.0
    m: float = 0.0
    updated: float = 0.0

    def faded(self, now: float, *, half_life: float, memory: float | None = None) -> Evidence:
        """As it counts at `now` (seconds since the epoch), and with `memory` after one more call."""
        age = max(now - self.updated, 0.0) if self.updated else 0.0
        keep = 0.5 ** (age / half_life) * (1.0 if memory is None else 1.0 - 1.0 / memory)
        return Evidence(
            n=self.n * keep,
            n2=self.n2 * keep * keep,
            t=self.t * keep,
            s=self.s * keep,
            tt=self.tt * keep,
            st=self.st * keep,
            ss=self.ss * keep,
            m=self.m * keep,
            updated=now,
        )

    def with_call(self, tokens: float, seconds: float, money: float = 0.0) -> Evidence:
        """One call more."""
        return replace(
            self,
            n=self.n + 1,
            n2=self.n2 + 1,
            t=self.t + tokens,
            s=self.s + seconds,
            tt=self.tt + tokens * tokens,
            st=self.st + seconds * tokens,
            ss=self.ss + seconds * seconds,
            m=self.m + money,
        )

    @classmethod
    def from_figures(cls, figures: Sequence[object]) -> Evidence:
        """The evidence that a file holds; none at all where a figure is nonsense."""
        known = [figure for figure in figures if isinstance(figure, float | int) and 0 <= figure < math.inf]
        found = cls(*known) if len(known) == len(figures) == len(fields(cls)) else cls()
        return found if min(found.n, found.n2, found.t, found.s) > 0 else cls()

    @property
    def calls(self) -> float:
        """How many fresh calls the evidence is worth: never more than its weight, which fades with time."""
        return min(self.n, self.n * self.n / self.n2) if self.n2 > 0 else 0.0

    @property
    def rate(self) -> float:
        """Seconds per token."""
        return self.s / self.t

    @property
    def money_rate(self) -> float:
        """Extra money per token."""
        return self.m / self.t

    @property
    def residual(self) -> float:
        """Variance of a call's seconds about rate × tokens."""
        spread = self.ss - 2 * self.rate * self.st + self.rate**2 * self.tt
        return max(spread, 0.0) / self.n * self.calls / max(self.calls - 1, 1e-9)

    @property
    def variance(self) -> float:
        """Variance of `rate`."""
        mean_tokens = self.t / self.n
        return self.residual / (mean_tokens**2 * self.calls)


def difference(without: Evidence, sent: Evidence) -> tuple[float, float, float]:
    """Seconds saved per token by sending, the standard error of that, and its degrees of freedom."""
    a, b = without.variance, sent.variance
    error = math.sqrt(a + b)
    if error == 0:
        return without.rate - sent.rate, 0.0, 1.0
    freedom = (a + b) ** 2 / (a * a / (without.calls - 1) + b * b / (sent.calls - 1))
    return without.rate - sent.rate, error, freedom


def saved_per_token(without: Evidence, sent: Evidence) -> Interval:
    """Seconds saved per token by sending the prediction."""
    mean, error, freedom = difference(without, sent)
    reach = t_quantile((1 + CONFIDENCE) / 2, freedom) * error
    return Interval(mean, mean - reach, mean + reach)


def saved_in_call(without: Evidence, tokens: float, seconds: float) -> Interval:
    """Seconds saved in one call against what a call without would have taken, its own scatter included."""
    mean = without.rate * tokens - seconds
    error = math.sqrt(tokens * tokens * without.variance + without.residual)
    reach = t_quantile((1 + CONFIDENCE) / 2, without.calls - 1) * error
    return Interval(mean, mean - reach, mean + reach)


def t_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t by expansion about the normal one (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    v = max(freedom, 2.0)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / v + second / v**2 + third / v**3 + fourth / v**4


def t_probability(value: float, freedom: float) -> float:
    """P(T < value), by the normal approximation of Wallace (1959); good to three digits."""
    v = max(freedom, 2.0)
    z = (8 * v + 1) / (8 * v + 3) * math.sqrt(v * math.log1p(value * value / v))
    return NormalDist().cdf(math.copysign(z, value))
