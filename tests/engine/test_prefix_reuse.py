"""Prompts that begin alike share what was computed, and cannot be told from prompts that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import VOCAB, Bench, RecordingRunner, tiny_model
from fused_models import FAMILIES, SIZES, save

from specclient_engine.api import SamplingParams
from specclient_engine.runner.fused_native import NativeRunner
from specclient_engine.runner.native_build import native_library
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.runner.weights import read_shape
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


@pytest.fixture(params=["float32", "bfloat16", "int8"])
def native(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Bench]]:
    """Makes benches over the compiled kernels, in which no row depends on another."""
    library = native_library()
    if isinstance(library, str):
        pytest.skip(library)
    model_class, config_class, changes = FAMILIES["qwen2"]
    save(model_class, config_class(**{**SIZES, **changes, "vocab_size": VOCAB}), tmp_path)
    shape = read_shape(tmp_path)
    assert not isinstance(shape, str)
    made: list[Bench] = []

    def make() -> Bench:
        runner = NativeRunner(library, tmp_path, shape, request.param, 900, None)
        made.append(Bench(runner, prefill_chunk=64))
        return made[-1]

    yield make
    for bench in made:
        bench.engine.close()


def told(bench: Bench, prompt: list[int]) -> tuple[int | None, list[int], list[Any]]:
    """How much was reused, the answer, and the chance of each token and of the likeliest, unrounded."""
    answer = bench.plain(prompt, max_tokens=9, ignore_eos=True, sampling=SamplingParams(logprobs=5))
    return answer.stats.cached_tokens, answer.token_ids, answer.logprobs


def test_where_rows_are_alone_any_number_of_tokens_is_reused(native: Callable[[], Bench]) -> None:
    warm = native()
    told(warm, PROMPT[:20])
    for prompt, expected in (
        (PROMPT[:20], 19),
        (PROMPT[:28], 20),  # longer than the slot was asked for: it holds a whole block
        ([*PROMPT[:25], 9, 9], 25),
        ([*PROMPT[:13], *PROMPT[:9]], 0),
    ):
        reused, *answer = told(warm, prompt)
        nothing, *alone = told(native(), prompt)
        assert (reused, nothing) == (expected, 0)
        assert answer == alone


def test_a_few_first_words_in_common_do_not_cost_a_longer_prompt_its_slot(
    native: Callable[[], Bench],
) -> None:
    bench = native()
    told(bench, PROMPT)
    assert told(bench, [*PROMPT[:6], 9, 9, 9])[0] == 0
    assert told(bench, [*PROMPT, 9])[0] == len(PROMPT)
