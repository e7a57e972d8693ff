"""Prompts that begin alike share what was computed, and cannot be told from prompts that do not."""

from __future__ import annotations

import torch
from engine_kit import Bench, RecordingRunner, tiny_model

from specclient_engine.runner.plain import PlainRunner
from specclient_engine.slot_pool import KEPT

PROMPT = [(3 * number) % 250 for number in range(70)]


def first_start(recording: RecordingRunner) -> int:
    return recording.passes[0][0][0]


def test_the_whole_pieces_in_common_are_not_computed_again(bench: Bench, recording: RecordingRunner) -> None:
    fresh = bench.plain(PROMPT, max_tokens=9)
    for prompt, reused in ((PROMPT, 64), ([*PROMPT[:40], 9, *PROMPT[41:]], 32), (PROMPT[:32], 16)):
        recording.passes.clear()
        answer = bench.plain(prompt, max_tokens=9)
        assert first_start(recording) == reused
        assert answer.stats.cached_tokens == reused
        assert answer.stats.prompt_tokens == len(prompt)
    assert fresh.stats.cached_tokens == 0
    assert bench.plain(PROMPT, max_tokens=9).token_ids == fresh.token_ids


def test_reused_keys_and_values_are_the_same_to_the_last_bit(recording: RecordingRunner) -> None:
    def rows(warm: bool) -> list[torch.Tensor]:
        seen: list[torch.Tensor] = []
        runner = RecordingRunner(PlainRunner(tiny_model()))
        inner = runner.inner.forward
        bench = Bench(runner)
        if warm:
            bench.plain([*PROMPT[:50], 1, 2, 3], max_tokens=30, ignore_eos=True)
        runner.inner.forward = lambda chunks: (seen.append(inner(chunks)), seen[-1])[1]  # type: ignore[method-assign]
        bench.plain(PROMPT, max_tokens=5, ignore_eos=True)
        bench.engine.close()
        return [row for row in seen if len(row)]

    for cold, warm in zip(rows(False), rows(True), strict=True):
        assert torch.equal(cold, warm)


def test_a_slot_too_small_is_not_reused(bench: Bench, recording: RecordingRunner) -> None:
    bench.plain(PROMPT, max_tokens=2)
    recording.passes.clear()
    assert bench.plain(PROMPT, max_tokens=60, ignore_eos=True).stats.cached_tokens == 0


def test_few_slots_are_kept_and_given_up_when_memory_is_needed() -> None:
    runner = RecordingRunner(PlainRunner(tiny_model()))
    runner.inner.token_capacity = 250
    bench = Bench(runner)
    for number in range(KEPT + 2):
        bench.plain([number] * 30, max_tokens=2)
    assert len(runner.live) <= KEPT
    assert bench.plain(PROMPT, max_tokens=170, ignore_eos=True).stats.completion_tokens == 170
    assert len(runner.live) == 1
    bench.engine.close()
    assert not runner.live
