"""Requests that share passes do not notice each other; the cache is theirs as long as they run."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from engine_kit import (
    VOCAB,
    Answer,
    Bench,
    ByteTokenizer,
    RecordingRunner,
    Scripted,
    adversaries,
    tiny_model,
)

from specclient_engine import GenerationRequest, SamplingParams
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.errors import EngineClosed, EngineError, NotEnoughMemory, UnsupportedRequest
from specclient_engine.proposers import build_proposer
from specclient_engine.request_state import RequestState
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.plain import PlainRunner


def requests(dice: random.Random, count: int) -> list[GenerationRequest]:
    return [
        GenerationRequest(
            prompt_ids=[dice.randrange(VOCAB) for _ in range(dice.randint(1, 60))],
            predictions=["abcabcabc" * dice.randint(0, 3)],
            max_tokens=dice.randint(1, 40),
            sampling=SamplingParams(
                temperature=dice.choice([0.0, 1.0]), seed=dice.randrange(99), presence_penalty=dice.random()
            ),
            ignore_eos=True,
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_of_ragged_drafts_equals_single_runs(bench: Bench, seed: int) -> None:
    dice = random.Random(seed)
    wanted = requests(dice, 12)
    alone = [Answer.read(bench.engine.submit(request)) for request in wanted]
    kinds = ["oracle", "wrong", "random", "sometimes wrong", "too long", "nothing"]

    def proposer_for(state: RequestState) -> Scripted:
        truth = alone[wanted.index(state.request)].token_ids
        return adversaries([*truth, *[0] * 80], seed)[dice.choice(kinds)]

    bench.proposer = proposer_for
    handles = []
    for request in wanted:
        handles.append(bench.engine.submit(request))
        if dice.random() < 0.3:
            next(handles[dice.randrange(len(handles))], None)
    dropped = bench.engine.submit(requests(dice, 1)[0])
    dropped.cancel()
    for handle, single in zip(handles, alone, strict=True):
        read = [token for step in handle for token in step.token_ids]
        assert read == single.token_ids[len(single.token_ids) - len(read) :]
        assert handle.stats is not None
        assert handle.stats.completion_tokens == single.stats.completion_tokens


def test_the_real_proposer_and_policy_change_nothing(tiny_runner: PlainRunner) -> None:
    bench = Bench(tiny_runner, lengths=DraftLengthPolicy(CostCurve.linear(0.01, 0.008, 0.0005)))
    tokenizer = ByteTokenizer()
    prompt = list(b"def f(x):\n    return x + 1\n" * 3)
    plain = bench.plain(prompt, max_tokens=80, ignore_eos=True)
    drafted = 0
    for prediction in (plain.text, "unrelated words", plain.text[10:40] + "?" + plain.text[45:], ""):
        bench.proposer = lambda state, known=prediction: build_proposer(state.prompt, [known], tokenizer)
        answer = bench.ask(prompt, max_tokens=80, ignore_eos=True, predictions=[prediction])
        assert answer.token_ids == plain.token_ids
        drafted += sum(count for count, _ in answer.stats.by_source.values())
    assert drafted > 0
    bench.engine.close()


def test_a_long_prompt_is_prefilled_in_pieces_between_the_others_tokens(
    bench: Bench, recording: RecordingRunner
) -> None:
    first = bench.engine.submit(GenerationRequest(prompt_ids=[1], max_tokens=60, ignore_eos=True))
    next(first)
    second = bench.engine.submit(GenerationRequest(prompt_ids=[2] * 100, max_tokens=2, ignore_eos=True))
    list(second)
    list(first)
    shared = [chunks for chunks in recording.passes if len(chunks) == 2]
    pieces = [chunks[1] for chunks in shared if chunks[1][0] < 100]
    assert pieces == [(start, min(16, 100 - start), int(start == 96)) for start in range(0, 100, 16)]
    assert all(chunks[0][1] == 1 for chunks in shared)
    assert second.stats is not None
    assert second.stats.submitted <= second.stats.scheduled < second.stats.first_token < second.stats.finished


def test_short_prompts_are_prefilled_together(bench: Bench, recording: RecordingRunner) -> None:
    alone = [bench.plain([number] * 5, max_tokens=8, ignore_eos=True).token_ids for number in range(6)]
    gate = threading.Event()
    recording.before_forward = lambda: gate.wait(10)  # type: ignore[assignment]
    first = bench.engine.submit(GenerationRequest(prompt_ids=[99], max_tokens=1))
    handles = [
        bench.engine.submit(GenerationRequest(prompt_ids=[number] * 5, max_tokens=8, ignore_eos=True))
        for number in range(6)
    ]
    recording.passes.clear()
    gate.set()
    list(first)
    assert [Answer.read(handle).token_ids for handle in handles] == alone
    # Sixteen tokens of prompts a pass: three of five tokens each.
    prompts = [sum(length == 5 for _, length, _ in chunks) for chunks in recording.passes]
    assert [count for count in prompts if count] == [3, 3]


def test_a_cancelled_request_ends_between_passes_and_frees_its_cache(
    bench: Bench, recording: RecordingRunner
) -> None:
    recording.inner = PlainRunner(recording.inner.model)
    recording.inner.token_capacity = 256
    handle = bench.engine.submit(GenerationRequest(prompt_ids=[1, 2], ignore_eos=True))
    gate = threading.Event()
    next(handle)
    recording.before_forward = lambda: (handle.cancel(), gate.set())[1]
    assert gate.wait(10)
    steps = list(handle)
    assert steps[-1].finish_reason == "cancelled"
    assert handle.stats is not None
    assert handle.stats.finish_reason == "cancelled"
    assert handle.stats.completion_tokens < 250
    # Its memory is there for the next request, which would not fit beside it.
    recording.before_forward = lambda: None
    assert len(bench.ask([3], max_tokens=240, ignore_eos=True).token_ids) == 240


def test_what_does_not_fit_now_waits_and_what_never_fits_is_refused(recording: RecordingRunner) -> None:
    recording.inner = PlainRunner(recording.inner.model)
    recording.inner.token_capacity = 100
    bench = Bench(recording)
    wanted: dict[str, Any] = {"max_tokens": 50, "ignore_eos": True}
    handles = [bench.engine.submit(GenerationRequest(prompt_ids=[k] * 20, **wanted)) for k in range(3)]
    assert [len(Answer.read(handle).token_ids) for handle in handles] == [50, 50, 50]
    # 70 of 100 positions each: never two at once.
    assert all(len(chunks) == 1 for chunks in recording.passes)
    with pytest.raises(NotEnoughMemory, match=r"120 tokens.*100"):
        bench.ask([1] * 120)
    bench.engine.close()


def test_a_failing_pass_ends_its_requests_only(bench: Bench, recording: RecordingRunner) -> None:
    recording.before_forward = lambda: 1 / 0  # type: ignore[assignment,return-value]
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        bench.ask(max_tokens=3)
    recording.before_forward = lambda: None
    assert len(bench.ask(max_tokens=3, ignore_eos=True).token_ids) == 3


def test_closing_ends_what_runs_and_refuses_what_comes(recording: RecordingRunner) -> None:
    bench = Bench(recording)
    started = threading.Event()
    closing = threading.Event()
    recording.before_forward = lambda: (started.set(), closing.wait(10))[0]
    handle = bench.engine.submit(GenerationRequest(prompt_ids=[1]))
    assert started.wait(10)
    closer = threading.Thread(target=bench.engine.close)
    closer.start()
    while not bench.engine._scheduler._closing:
        pass
    closing.set()
    with pytest.raises(EngineClosed):
        list(handle)
    closer.join()
    bench.engine.close()
    assert not bench.engine._thread.is_alive()
    assert not recording.live
    with pytest.raises(EngineClosed):
        bench.ask()


@pytest.mark.parametrize("seed", range(3))
def test_rolling_back_leaves_nothing_behind(seed: int) -> None:
    dice = random.Random(seed)
    model = tiny_model(seed=seed)
    runner = PlainRunner(model)
    text = [dice.randrange(VOCAB) for _ in range(60)]
    fresh = runner.allocate(64)
    truth = runner.forward([Chunk(fresh, 0, text)])
    slot, at = runner.allocate(64), 0
    while at < len(text):
        right = dice.randint(1, 6)
        chunk = [*text[at : at + right], *[dice.randrange(VOCAB) for _ in range(dice.randint(0, 4))]]
        chunk = chunk[: 64 - at]
        rows = runner.forward([Chunk(slot, at, chunk)])
        confirmed = min(right, len(text) - at)
        assert (rows[:confirmed] - truth[at : at + confirmed]).abs().max() < 1e-3
        at += confirmed


@pytest.mark.parametrize(
    "values",
    [
        {"seed": "x", "temperature": 1.0},
        {"seed": 1.5},
        {"temperature": "hot"},
        {"temperature": float("nan")},
        {"top_k": 1.5},
        {"presence_penalty": "x"},
        {"frequency_penalty": float("nan")},
        {"repetition_penalty": 0},
        {"logit_bias": {5: float("nan")}},
        {"logit_bias": {5: "x"}},
        {"logprobs": -1},
    ],
)
def test_a_value_that_no_sampler_can_use_is_refused_at_once(bench: Bench, values: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedRequest, match=next(iter(values))):
        bench.engine.submit(GenerationRequest(prompt_ids=[1], sampling=SamplingParams(**values)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"prompt_ids": []}, "prompt is empty"),
        ({"prompt_ids": [1.5]}, "prompt holds something that is no token id"),
        ({"prompt_ids": ["a"]}, "prompt holds something that is no token id"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number"),
        ({"max_tokens": True}, "max_tokens must be a whole number"),
        ({"stop": "end"}, "stop is a list of strings"),
        ({"predictions": "text"}, "predictions is a list of strings"),
        ({"predictions": [b"text"]}, "predictions is a list of strings"),
        ({"speculation": "maybe"}, "speculation is 'maybe'"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_at_once(
    bench: Bench, recording: RecordingRunner, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnsupportedRequest, match=words):
        bench.engine.submit(GenerationRequest(**{"prompt_ids": [1], **values}))
    assert recording.passes == []


@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e-6, 1e300, float("inf")])
def test_any_temperature_is_sampled_without_overflow(bench: Bench, temperature: float) -> None:
    sampling = SamplingParams(temperature=temperature, seed=1)
    answer = bench.plain([1, 2], max_tokens=3, ignore_eos=True, sampling=sampling)
    assert len(answer.token_ids) == 3
    if temperature < 1:
        assert answer.token_ids == bench.plain([1, 2], max_tokens=3, ignore_eos=True).token_ids


def test_what_fails_for_one_request_leaves_those_that_share_its_pass_alone(
    bench: Bench, recording: RecordingRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = bench.plain([7] * 5, max_tokens=8, ignore_eos=True).token_ids
    take = RequestState.take

    def fails(state: RequestState, *rest: Any) -> Any:
        if state.prompt[0] == 9 and state.generated == 2:
            raise ValueError("a fault of this request")
        return take(state, *rest)

    monkeypatch.setattr(RequestState, "take", fails)
    gate = threading.Event()
    recording.before_forward = lambda: gate.wait(10)  # type: ignore[assignment]
    handles = [
        bench.engine.submit(GenerationRequest(prompt_ids=[number] * 5, max_tokens=8, ignore_eos=True))
        for number in (9, 7)
    ]
    gate.set()
    with pytest.raises(EngineError, match="a fault of this request"):
        Answer.read(handles[0])
    assert Answer.read(handles[1]).token_ids == alone


def test_a_forked_process_is_told_that_the_engine_stayed_behind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        with pytest.raises(EngineClosed, match="load it in this one"):
            bench.ask(max_tokens=1)
    assert bench.plain(max_tokens=1).token_ids
