"""Rates and weights to start from, fitted by `benchmarks/fit_priors.py` on half of its edits."""

RATES: dict[str, float] = {}
BLEND: dict[str, tuple[float, ...]] = {}
