"""Logits that are computed where verification comes to them are the same, and are not missed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import Bench, Scripted, adversaries, oracle
from fused_models import save_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fuzz_requests import SAMPLINGS
from test_runner_fused import native, some_ids

from specclient_engine import SamplingParams, pass_logits
from specclient_engine.api import Draft
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.plain import PlainRunner

fuzz = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Late:
    """Hides the rows that nobody has asked for: whoever reads them reads nonsense."""

    late_share = 0.25

    def __init__(self, inner: PlainRunner) -> None:
        self.inner = inner
        self.begun = self.hidden = 0
        self._whole = self._shown = torch.empty(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def begin(self, chunk: Chunk, rows: int) -> torch.Tensor:
        self._whole = self.inner.forward([chunk]).clone()
        self._shown = torch.full_like(self._whole, torch.nan)
        self.begun += 1
        self.hidden += len(self._whole)
        self.complete(rows)
        return self._shown

    def complete(self, until: int) -> None:
        self.hidden -= int(self._shown[:until].isnan().any(dim=-1).sum())
        self._shown[:until] = self._whole[:until]


@pytest.fixture
def late(tiny_runner: PlainRunner, monkeypatch: pytest.MonkeyPatch) -> Late:
    """A runner whose passes are begun with few rows, however short the draft is."""
    monkeypatch.setattr(pass_logits, "FIRST_ROWS", 2)
    monkeypatch.setattr(pass_logits, "TILE_ROWS", 1)
    monkeypatch.setattr(pass_logits, "LATE_ROWS", 3)
    return Late(tiny_runner)


@pytest.fixture
def bench(late: Late) -> Iterator[Bench]:
    bench = Bench(late)
    yield bench
    bench.engine.close()


@fuzz
@given(sampling=SAMPLINGS, max_tokens=st.integers(1, 60), seed=st.integers(0, 99))
def test_the_answer_is_the_plain_one(
    bench: Bench, late: Late, sampling: SamplingParams, max_tokens: int, seed: int
) -> None:
    plain = bench.plain(sampling=sampling, max_tokens=max_tokens)
    for name, proposer in adversaries([*plain.token_ids, *([3] * 80)], seed).items():
        bench.use(proposer)
        answer = bench.ask(sampling=sampling, max_tokens=max_tokens)
        assert answer.token_ids == plain.token_ids, name
        assert answer.text == plain.text, name
    assert max_tokens < 5 or late.begun


def test_rows_behind_a_wrong_token_are_left_out_and_a_right_draft_reads_all(bench: Bench, late: Late) -> None:
    plain = bench.plain(max_tokens=100, ignore_eos=True)
    bench.use(adversaries([*plain.token_ids, *([3] * 200)])["wrong"])
    bench.ask(max_tokens=100, ignore_eos=True)
    assert late.hidden > 99 * 20
    late.hidden = 0
    bench.use(oracle(plain.token_ids))
    answer = bench.ask(max_tokens=100, ignore_eos=True)
    assert answer.stats.forward_passes == 1
    assert late.hidden == 0


def test_what_late_rows_take_is_verification(bench: Bench, late: Late) -> None:
    """It belongs to the time of verifying also where the request ends with it."""
    plain = bench.plain(max_tokens=60, ignore_eos=True)
    told: list[int] = []
    complete = late.complete

    def slow(until: int) -> None:
        told.append(until)
        torch.randn(600, 600) @ torch.randn(600, 600)
        complete(until)

    late.complete = slow  # type: ignore[method-assign]
    bench.use(oracle(plain.token_ids))
    stats = bench.ask(max_tokens=60, ignore_eos=True).stats
    assert told[-1] == 60 - 1
    assert 0 < stats.verifying <= stats.finished - stats.submitted


class Hundreds:
    """A cost model that hears of passes: a hundred seconds a row."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, float]] = []

    def seconds(self, rows: int, context: int) -> float:
        return 100.0 * rows

    def observe(self, rows: int, context: int, seconds: float) -> None:
        self.heard.append((rows, seconds))


def test_the_cost_model_hears_of_whole_passes(late: Late) -> None:
    """Else a pass would look cheaper the worse its draft was."""
    cost = Hundreds()
    bench = Bench(late, cost=cost)
    bench.use(Scripted(lambda _, limit: [7] * limit))
    bench.ask(max_tokens=30, ignore_eos=True)
    bench.engine.close()
    rows, seconds = max(cost.heard)
    assert rows == 29
    # What was computed of 29 rows took no time here, and a quarter of each further row is its logits.
    assert seconds == pytest.approx(0.25 * 100.0 * 20, rel=0.01)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
def test_the_kernels_compute_late_rows_to_the_bit(kind: str, tmp_path: Path) -> None:
    save_model("llama-odd-sizes", tmp_path)
    runner: Any = native(tmp_path, kind)
    assert 0 < runner.late_share < 1
    slot = runner.allocate(200)
    runner.forward([Chunk(slot, 0, some_ids(40), 40)])
    for rows, cuts in ((90, (1, 2, 50)), (90, (24, 89)), (30, (7,)), (2, (1,))):
        chunk = Chunk(slot, 40, some_ids(rows, seed=rows), 1)
        whole = runner.forward([chunk]).clone()
        begun = runner.begin(chunk, cuts[0])
        for until in (*cuts[1:], rows - 1):
            runner.complete(until)
        assert torch.equal(begun, whole)


def test_rows_that_may_not_be_looked_at_cost_less() -> None:
    """A doubtful draft may be longer where its last rows' logits are hardly ever computed."""
    cost = CostCurve.linear(0.001, 0.01, 0.001)
    doubtful = Draft((1,) * 60, ("test",) * 60, (0.93,) * 60)
    certain = Draft((1,) * 60, ("test",) * 60, (1.0,) * 60)
    lengths = [
        [DraftLengthPolicy(cost, late_share=share).choose([(draft, 0)])[0] for share in (0.0, 0.3, 0.6)]
        for draft in (doubtful, certain)
    ]
    assert lengths[0] == sorted(set(lengths[0]))
    assert lengths[1] == [60, 60, 60]
