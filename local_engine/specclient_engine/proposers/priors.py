"""Rates and weights to start from, read from `priors.json`, which `benchmarks/fit_priors.py` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def shipped() -> tuple[Mapping[str, float], Mapping[str, tuple[float, ...]]]:
    """Rates by key (as `AcceptanceTable.to_dict` writes keys), and weights of the blend by kind of guess."""
    data = json.loads(Path(__file__).with_name("priors.json").read_text(encoding="utf-8"))
    return data["rates"], {kind: tuple(weights) for kind, weights in data["blend"].items()}
