"""While it serves, the engine holds its weights, the cache that was written, and little else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from Linux")
def test_c28_a_prediction_of_20000_tokens_and_a_long_prompt_stay_within_the_workspace(
    smollm2_path: Path,
) -> None:
    """In a process of its own: this one holds the memory of other tests."""
    command = [sys.executable, "-m", "benchmarks.memory", "--model", str(smollm2_path), "--prompt", "1024"]
    done = subprocess.run(
        [*command, "--json"], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    names = [row["after"] for row in found["rows"]]
    assert names[0] == "loading"
    assert "prediction of" in names[1]
    assert "prompt of 1024 tokens" in names[2]
    # The idle interpreter and torch are counted in.
    assert all(100e6 < row["beside"] < 400e6 for row in found["rows"])
    # What it added is a small part of what logits for all of it would take (20,000 rows of 192 KiB).
    assert found["rows"][1]["beside"] - found["rows"][0]["beside"] < 150e6
