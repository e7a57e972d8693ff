"""What the benchmarks share: the edits they run on, the machine they run on, and how figures are printed."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
OWN_EDITS = ROOT / "benchmarks" / "data" / "edits.jsonl"
"""Eight edits written for this repository, for a checkout without the published sets beside it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A file before and after a change, and the instruction that asks for it."""

    name: str
    before: str
    after: str
    instruction: str


def at_hand(path: Path) -> Path:
    """`path`, or this repository's own edits where a published set is not beside the checkout; says so."""
    if path.exists():
        return path
    if path.parent != DATA:
        sys.exit(f"{path} is not there: give the edits with --data.")
    say(f"{path.stem} is not beside this checkout: using the {OWN_EDITS.name} of benchmarks/data instead")
    return OWN_EDITS


def load_edits(path: Path) -> list[Edit]:
    """One edit a line: name (or path), before, after, instruction_descriptive."""
    path = at_hand(path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Edit(
            str(row.get("name") or row.get("path") or row["id"]),
            row["before"],
            row["after"],
            row["instruction_descriptive"],
        )
        for row in rows
    ]


def spread(edits: Sequence[Edit], count: int) -> list[Edit]:
    """`count` edits spread evenly over the lengths, so that no size is chosen by hand."""
    ordered = sorted(edits, key=lambda edit: (len(edit.before), edit.name))
    return [ordered[(2 * i + 1) * len(ordered) // (2 * count)] for i in range(count)]


def machine() -> dict[str, Any]:
    """The facts a reader needs to place a figure."""
    facts: dict[str, Any] = {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    for name in ("torch", "transformers"):
        module = sys.modules.get(name)
        if module is not None:
            facts[name] = str(module.__version__)
    return facts


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def say(text: str) -> None:
    """Progress: never on stdout."""
    print(text, file=sys.stderr, flush=True)
