"""Speculation changes speed and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from engine_kit import VOCAB, Bench, RecordingRunner, adversaries, assert_same, oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specclient_engine import SamplingParams

samplings = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.0, 0.3, 1.0, 1.7]),
    top_p=st.sampled_from([1.0, 0.9, 0.3]),
    top_k=st.sampled_from([0, 1, 5, 40]),
    min_p=st.sampled_from([0.0, 0.05, 0.5]),
    presence_penalty=st.sampled_from([0.0, 0.0, 1.2, -0.7]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 0.8]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.3]),
    logit_bias=st.sampled_from([{}, {}, {5: 3.0, 250: -100.0}]),
    seed=st.integers(0, 2**64 - 1),
    logprobs=st.sampled_from([None, None, 0, 3]),
)
prompts = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=40)
fuzz = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@fuzz
@given(prompt=prompts, sampling=samplings, max_tokens=st.integers(1, 30), seed=st.integers(0, 99))
def test_every_proposer_gives_the_plain_output(
    bench: Bench, prompt: list[int], sampling: SamplingParams, max_tokens: int, seed: int
) -> None:
    wanted: dict[str, Any] = {"sampling": sampling, "max_tokens": max_tokens}
    plain = bench.plain(prompt, **wanted)
    # What comes behind an answer's end, for proposers that draft beyond it.
    truth = [*plain.token_ids, *([3] * 80)]
    for name, proposer in adversaries(truth, seed).items():
        bench.use(proposer)
        answer = bench.ask(prompt, **wanted)
        assert_same(answer, plain, name)
        for (_, others), (_, plain_others) in zip(answer.logprobs, plain.logprobs, strict=True):
            assert [o.token_id for o in others] == [o.token_id for o in plain_others]


def test_an_oracle_accepts_everything_in_few_passes(bench: Bench) -> None:
    plain = bench.plain(max_tokens=200, ignore_eos=True)
    bench.use(oracle(plain.token_ids))
    answer = bench.ask(max_tokens=200, ignore_eos=True)
    assert answer.token_ids == plain.token_ids
    # The first token comes with the prefill, then 129 and 70 more.
    assert answer.stats.forward_passes == 2
    assert answer.stats.by_source == {"test": (128 + 69, 128 + 69)}
    assert answer.stats.acceptance_histogram[128] == 1
    assert sum(answer.stats.acceptance_histogram) == 2


def test_without_speculation_the_passes_are_those_of_a_plain_loop(
    bench: Bench, recording: RecordingRunner
) -> None:
    bench.use(oracle([9] * 99))
    answer = bench.plain(list(range(40)), max_tokens=5)
    prefill = [((0, 16, 0),), ((16, 16, 0),), ((32, 8, 1),)]
    assert recording.passes == prefill + [((40 + i, 1, 1),) for i in range(4)]
    assert answer.stats.forward_passes == 4
    assert answer.stats.by_source == {}
    assert answer.stats.speculation_inactive is None


def test_a_proposer_without_drafts_costs_no_pass(bench: Bench, recording: RecordingRunner) -> None:
    bench.plain(list(range(40)), max_tokens=5, ignore_eos=True)
    plain = list(recording.passes)
    recording.passes.clear()
    answer = bench.ask(list(range(1, 41)), max_tokens=5, ignore_eos=True)
    assert recording.passes == plain
    assert answer.stats.speculation_inactive == "nothing known matched what the model wrote"


def test_a_failing_proposer_costs_speed_and_says_so(bench: Bench) -> None:
    bench.use(adversaries([0] * 200)["failing"])
    answer = bench.ask(max_tokens=20)
    assert answer.stats.speculation_inactive == "the proposer failed (ZeroDivisionError)"
    assert answer.token_ids == bench.plain(max_tokens=20).token_ids


def test_a_draft_may_not_hold_foreign_ids(bench: Bench, recording: RecordingRunner) -> None:
    plain = bench.plain(max_tokens=30)
    bench.use(adversaries(plain.token_ids)["foreign ids"])
    recording.passes.clear()
    assert bench.ask(max_tokens=30).token_ids == plain.token_ids
    assert max(length for passes in recording.passes[1:] for _, length, _ in passes) == 3


def test_seeds_are_reproducible_and_differ(bench: Bench) -> None:
    def ask(seed: int | None) -> list[int]:
        sampling = SamplingParams(temperature=1.5, seed=seed)
        return bench.plain(max_tokens=30, sampling=sampling).token_ids

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)
    assert ask(None) != ask(None)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(presence_penalty=1e4),
        SamplingParams(temperature=1.0, seed=8, frequency_penalty=1e4),
        SamplingParams(temperature=1.5, seed=9),
    ],
    ids=["greedy without repetition", "sampled without repetition", "sampled"],
)
def test_history_and_position_hold_inside_a_block(bench: Bench, sampling: SamplingParams) -> None:
    plain = bench.plain([5, 6], max_tokens=60, ignore_eos=True, sampling=sampling)
    bench.use(oracle(plain.token_ids))
    answer = bench.ask([5, 6], max_tokens=60, ignore_eos=True, sampling=sampling)
    assert answer.token_ids == plain.token_ids
    assert answer.stats.forward_passes == 1
    if sampling.presence_penalty or sampling.frequency_penalty:
        assert len(set(plain.token_ids)) == 60
