"""Samples of a measurement whose gain is known."""

from __future__ import annotations

import random
from dataclasses import replace

from specclient.bench.store import Sample


def samples(gain: float, *, cases: int = 4, repeats: int = 5, **fields: object) -> list[Sample]:
    draw = random.Random(5)
    found = []
    for case in range(cases):
        for repeat in range(repeats):
            for arm in ("without", "with"):
                seconds = (1 if arm == "without" else 1 / gain) * draw.uniform(0.95, 1.05)
                sample = Sample(
                    key=f"w/{case}/1 clients/{repeat}.0/{arm}", workload="w", case=str(case), arm=arm,
                    clients=1, repeat=repeat, total=seconds, decode=seconds * 0.8, prefill=0.1, queue=0.0,
                    completion_tokens=101, forward_passes=100 if arm == "without" else 20, digest="d",
                    accepted=80 if arm == "with" else None, rejected=20 if arm == "with" else None,
                    extra_billed=20 if arm == "with" else None, outcome="local" if arm == "with" else "none",
                    block_seconds=seconds, block_tokens=101, joules=50.0,
                    draft_seconds=seconds * 0.1, verify_seconds=seconds * 0.6,
                )  # fmt: skip
                found.append(replace(sample, **fields))  # type: ignore[arg-type]
    return found
