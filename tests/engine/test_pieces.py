"""Logits that are computed piece by piece are the same, and those that nobody reads are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import Bench, Scripted, adversaries, oracle
from fused_models import save_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fuzz_requests import SAMPLINGS
from test_runner_fused import aten, native, some_ids

from specclient_engine import GenerationRequest, SamplingParams, pass_logits
from specclient_engine.cost import CostCurve
from specclient_engine.pass_logits import PassLogits
from specclient_engine.runner.base import PIECE_ROWS, Chunk, piecewise
from specclient_engine.runner.plain import PlainRunner

PIECE = 3
fuzz = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Pieces:
    """Shows one piece of a pass at a time, in the same memory: whoever reads another reads nonsense."""

    is_piecewise = True

    def __init__(self, inner: PlainRunner) -> None:
        self.inner = inner
        self.wanted = self.shown = 0
        self._whole = torch.empty(0)
        self._room = torch.empty(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def begin(self, chunks: Sequence[Chunk]) -> int:
        self._whole = self.inner.forward(chunks).clone()
        self._room = torch.empty(PIECE, self.inner.vocab_size)
        self.wanted += len(self._whole)
        return len(self._whole)

    def logits(self, first: int, rows: int) -> torch.Tensor:
        assert rows <= PIECE
        self.shown += rows
        self._room.fill_(torch.nan)
        self._room[:rows] = self._whole[first : first + rows]
        return self._room[:rows]


@pytest.fixture
def pieces(tiny_runner: PlainRunner, monkeypatch: pytest.MonkeyPatch) -> Pieces:
    monkeypatch.setattr(pass_logits, "PIECE_ROWS", PIECE)
    return Pieces(tiny_runner)


@pytest.fixture
def bench(pieces: Pieces) -> Iterator[Bench]:
    bench = Bench(pieces)
    yield bench
    bench.engine.close()


@fuzz
@given(sampling=SAMPLINGS, max_tokens=st.integers(1, 60), seed=st.integers(0, 99))
def test_the_answer_is_the_plain_one(
    bench: Bench, sampling: SamplingParams, max_tokens: int, seed: int
) -> None:
    plain = bench.plain(sampling=sampling, max_tokens=max_tokens)
    for name, proposer in adversaries([*plain.token_ids, *([3] * 80)], seed).items():
        bench.use(proposer)
        answer = bench.ask(sampling=sampling, max_tokens=max_tokens)
        assert answer.token_ids == plain.token_ids, name
        assert answer.text == plain.text, name


def test_requests_that_share_a_pass_each_read_their_own_rows(bench: Bench) -> None:
    prompts = [(1, 2, 3), (7, 7), (200, 100, 50, 25)]
    plain = [bench.plain(prompt, max_tokens=40, ignore_eos=True) for prompt in prompts]
    scripts = {prompt: answer.token_ids for prompt, answer in zip(prompts, plain, strict=True)}
    # The second drafts wrongly: what it leaves unread lies before the third's.
    scripts[(7, 7)] = tuple([3] * 80)
    bench.proposer = lambda state: oracle(scripts[tuple(state.prompt)])
    asked = [GenerationRequest(prompt_ids=prompt, max_tokens=40, ignore_eos=True) for prompt in prompts]
    handles = [bench.engine.submit(request) for request in asked]
    for handle, expected in zip(handles, plain, strict=True):
        assert tuple(token for step in handle for token in step.token_ids) == tuple(expected.token_ids)


def test_rows_behind_a_wrong_token_are_left_out_and_a_right_draft_reads_all(
    bench: Bench, pieces: Pieces
) -> None:
    plain = bench.plain(max_tokens=100, ignore_eos=True)
    bench.use(Scripted(lambda _, limit: [7] * limit))
    pieces.wanted = pieces.shown = 0
    bench.ask(max_tokens=100, ignore_eos=True)
    assert pieces.wanted > 10 * pieces.shown
    pieces.wanted = pieces.shown = 0
    bench.use(oracle(plain.token_ids))
    answer = bench.ask(max_tokens=100, ignore_eos=True)
    assert answer.stats.forward_passes == 1
    assert pieces.wanted == pieces.shown


def test_what_later_pieces_take_is_verification(
    bench: Bench, pieces: Pieces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to the time of verifying also where the request ends with it."""
    plain = bench.plain(max_tokens=60, ignore_eos=True)
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(pass_logits, "perf_counter_ns", lambda: next(ticks))
    bench.use(oracle(plain.token_ids))
    stats = bench.ask(max_tokens=60, ignore_eos=True).stats
    # 59 rows in pieces of 3, the first with the pass: each is 1000 ns between two looks at the clock.
    assert stats.verifying == 20 * 1000


def test_the_cost_model_hears_of_whole_passes_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a pass would look cheaper the worse its draft was."""
    heard: list[int] = []
    monkeypatch.setattr(CostCurve, "observe", lambda _, rows, *__: heard.append(rows))
    bench.use(Scripted(lambda _, limit: [7] * limit))
    bench.ask(max_tokens=30, ignore_eos=True)
    assert heard
    assert max(heard) <= PIECE
    heard.clear()
    plain = bench.plain(max_tokens=30, ignore_eos=True)
    bench.use(oracle(plain.token_ids))
    bench.ask(max_tokens=30, ignore_eos=True)
    assert max(heard) == 29


def test_a_pass_can_be_had_to_its_end(pieces: Pieces) -> None:
    slot = pieces.allocate(20)
    told: list[int] = []
    rows = PassLogits(pieces, [Chunk(slot, 0, list(range(10)))], told.append)
    assert not rows.whole
    rows.finish()
    assert rows.whole
    assert pieces.shown == 10
    assert len(told) == 4
    assert rows.spent == sum(told)
    pieces.release(slot)


@pytest.mark.parametrize("load", [aten, native])
def test_fused_runners_compute_pieces_to_the_bit(load: Any, tmp_path: Path) -> None:
    save_model("llama-odd-sizes", tmp_path)
    runner: Any = load(tmp_path, "float32")
    if piecewise(runner) is None:
        pytest.skip("this runner computes all logits of a pass at once")
    slots = [runner.allocate(600) for _ in range(2)]
    chunks = [Chunk(slots[0], 0, some_ids(300), 250), Chunk(slots[1], 0, some_ids(301, 1), 7)]
    whole = runner.forward(chunks).clone()
    wanted = runner.begin(chunks)
    assert wanted == len(whole) == 344
    for first in (*range(0, wanted, PIECE_ROWS), 5):
        rows = min(PIECE_ROWS, wanted - first)
        assert torch.equal(runner.logits(first, rows), whole[first : first + rows])


def test_no_more_than_a_piece_of_logits_is_kept(tmp_path: Path) -> None:
    save_model("llama", tmp_path)
    runner: Any = aten(tmp_path, "float32")
    slot = runner.allocate(200)
    rows = PassLogits(runner, [Chunk(slot, 0, some_ids(129))])
    rows.finish()
    assert len(runner._logits) == PIECE_ROWS
