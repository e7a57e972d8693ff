"""What speculation can gain, from its acceptance rate and the cost of its passes.

Leviathan, Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding"
(arXiv 2211.17192): theorem 3.8 and equation 1, with one thing added. They take a pass that verifies γ
tokens to cost as much as one that makes a single token; here it costs `verify` times as much, because on
a CPU, or at high concurrency, it does not.
"""

from __future__ import annotations

from collections.abc import Callable


def expected_tokens(acceptance: float, gamma: int) -> float:
    """Tokens that one verification pass yields on average: (1 - α^(γ+1)) / (1 - α).

    `acceptance` is the chance of each draft token to be accepted, given that those before it were.
    """
    _check(acceptance, gamma)
    if acceptance == 1.0:
        return float(gamma + 1)
    return float((1 - acceptance ** (gamma + 1)) / (1 - acceptance))


def gain(acceptance: float, gamma: int, cost_ratio: float = 0.0, verify: float = 1.0) -> float:
    """How many times faster than plain decoding: tokens a pass over the cost of the round.

    `cost_ratio` is the draft model's time for one token over the target's (0 for drafts from text),
    `verify` the time of a pass over γ + 1 tokens over that of a pass over one.
    """
    return expected_tokens(acceptance, gamma) / (gamma * cost_ratio + verify)


def best_gamma(
    acceptance: float,
    cost_ratio: float = 0.0,
    verify: Callable[[int], float] = lambda _gamma: 1.0,
    most: int = 32,
) -> tuple[int, float]:
    """The draft length up to `most` with the greatest gain, and that gain; 0 where drafting loses."""
    gains = [(gain(acceptance, gamma, cost_ratio, verify(gamma)), -gamma) for gamma in range(1, most + 1)]
    best, negative = max([(1.0, 0), *gains])
    return -negative, best


def round_cost(draft: float, verify: float, overhead: float, tokens: int) -> float | None:
    """Seconds for each validated token of a round: (draft + verify + overhead) / tokens.

    Speculation pays where this is below the seconds of one plainly decoded token. None without tokens.
    """
    return (draft + verify + overhead) / tokens if tokens else None


def _check(acceptance: float, gamma: int) -> None:
    if not 0 <= acceptance <= 1:
        raise ValueError(f"an acceptance rate lies between 0 and 1, not at {acceptance}")
    if gamma < 0:
        raise ValueError(f"a draft has 0 tokens or more, not {gamma}")
