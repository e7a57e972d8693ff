"""`benchmarks.regenerate` counts outputs that differ in bfloat16; in other kinds one is a fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import regenerate
from benchmarks.common import Edit
from benchmarks.rivals import Run

JOBS = [regenerate.Job(Edit(f"e{i}", "a", "b", "change it"), (1, 2), 8) for i in range(4)]


def flips_once(
    _engine: Any, job: regenerate.Job, contender: regenerate.Contender, *, speculate: bool
) -> None:
    contender.runs.append(Run((1, 2, 3 + (speculate and job.edit.name == "e2")), 1.0))


@pytest.mark.parametrize(
    "runner",
    [SimpleNamespace(kind="bfloat16"), SimpleNamespace(model=SimpleNamespace(dtype=torch.bfloat16))],
    ids=["fused", "plain path"],
)
def test_in_bfloat16_the_share_is_printed(
    runner: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(regenerate, "_our_run", flips_once)
    plain, predicted = regenerate.ours(SimpleNamespace(runner=runner), JOBS)  # type: ignore[arg-type]
    assert (len(plain.runs), len(predicted.runs)) == (4, 4)
    assert "bfloat16: 1 of 4 outputs differ between the two runs" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_in_float32_and_int8_one_flip_ends_the_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regenerate, "_our_run", flips_once)
    runner = SimpleNamespace(kind=kind)
    with pytest.raises(SystemExit, match="e2: the output with the prediction differs"):
        regenerate.ours(SimpleNamespace(runner=runner), JOBS)  # type: ignore[arg-type]
