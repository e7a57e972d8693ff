"""Many requests at once over little memory, with drafts, cancelled at any moment: none notices another."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import EOS, VOCAB, Answer, Bench, ByteTokenizer, RecordingRunner, Scripted, oracle
from fused_models import FAMILIES, SIZES, save

from specclient_engine import GenerationRequest, SamplingParams
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.errors import EngineClosed
from specclient_engine.proposers import build_proposer
from specclient_engine.runner.cuda import CudaRunner
from specclient_engine.runner.fused import FusedRunner
from specclient_engine.runner.fused_aten import AtenRunner
from specclient_engine.runner.fused_native import NativeRunner
from specclient_engine.runner.kv import BLOCK
from specclient_engine.runner.native_build import native_library
from specclient_engine.runner.weights import ModelShape, read_shape
from specclient_engine.slot_pool import KEPT

CPU = torch.device("cpu")
CONTEXT = 900
Make = Callable[[Path, ModelShape], FusedRunner]


def native(kind: Any) -> Make:
    def make(folder: Path, shape: ModelShape) -> FusedRunner:
        library = native_library()
        if isinstance(library, str):
            pytest.skip(library)
        return NativeRunner(library, folder, shape, kind, CONTEXT, None)

    return make


RUNNERS: dict[str, Make] = {
    "native float32": native("float32"),
    "native bfloat16": native("bfloat16"),
    "native int8": native("int8"),
    "aten float32": lambda folder, shape: AtenRunner(folder, shape, "float32", CPU, CONTEXT, None),
    # A static cache and padded passes of a few shapes, without the graphs.
    "cuda float32": lambda folder, shape: CudaRunner(folder, shape, "float32", CPU, CONTEXT, None),
}


@pytest.fixture(params=RUNNERS)
def crowded(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A bench over little memory: room for three blocks of cache."""
    model_class, config_class, changes = FAMILIES["qwen2"]
    save(model_class, config_class(**{**SIZES, **changes, "vocab_size": VOCAB}), tmp_path)
    shape = read_shape(tmp_path)
    assert not isinstance(shape, str)
    runner = RUNNERS[request.param](tmp_path, shape)
    if not isinstance(runner, CudaRunner):
        runner.kv.token_capacity = runner.token_capacity = 3 * BLOCK
    recording = RecordingRunner(runner)  # type: ignore[arg-type]
    lengths = DraftLengthPolicy(CostCurve.linear(0.01, 0.008, 0.0005), max_rows=256)
    bench = Bench(recording, lengths=lengths, prefill_chunk=64)
    tokenizer = ByteTokenizer()
    bench.proposer = lambda state: build_proposer(state.prompt, state.request.predictions, tokenizer)
    yield bench
    bench.engine.close()
    assert not recording.live


@dataclass
class Wanted:
    """A request, and its answer when it was alone and without drafts."""

    options: dict[str, Any]
    plain: Answer

    def known(self, dice: random.Random) -> str:
        text = self.plain.text
        return dice.choice([text, text[: len(text) // 2] + "?" + text[len(text) // 2 :], "abc", text * 9])


def wanted(bench: Bench, dice: random.Random) -> Wanted:
    prompt = [dice.randrange(VOCAB) for _ in range(dice.choice([1, 5, 63, 64, 65, 200, 400]))]
    if dice.random() < 0.4:
        prompt = list(("def f(a):\n    return a\n" * dice.randint(1, 20)).encode())
    options = {
        "prompt_ids": prompt,
        "max_tokens": dice.choice([1, 7, 30, 130]),
        "ignore_eos": dice.random() < 0.5,
        "sampling": SamplingParams(
            temperature=dice.choice([0.0, 0.0, 1.0]),
            presence_penalty=dice.choice([0.0, 1.5]),
            logit_bias=dice.choice([{}, {EOS: 5.0}]),
            seed=dice.randrange(2**64),
        ),
    }
    request = GenerationRequest(speculation="off", **options)
    return Wanted(options, Answer.read(bench.engine.submit(request)))


def test_a_crowd_that_comes_and_goes(crowded: Bench) -> None:
    dice = random.Random(5)
    alone = [wanted(crowded, dice) for _ in range(8)]
    crowd = []
    for one in [*alone, *alone]:
        handle = crowded.engine.submit(GenerationRequest(predictions=[one.known(dice)], **one.options))
        crowd.append((one.plain, handle, dice.choice(["read", "read", "cancel at once", "cancel", "drop"])))
    dice.shuffle(crowd)
    while crowd:
        plain, handle, fate = crowd.pop()
        if fate == "drop":
            del handle
            continue
        if fate == "cancel at once":
            handle.cancel()
        got: list[int] = []
        reason = None
        for count, step in enumerate(handle):
            got += step.token_ids
            reason = step.finish_reason
            if fate == "cancel" and count == 1:
                handle.cancel()
        whole = plain.token_ids
        assert got == (whole[: len(got)] if reason == "cancelled" else whole)
        assert reason in ("cancelled", plain.stats.finish_reason)
    recording: Any = crowded.engine.runner
    assert max(len(chunks) for chunks in recording.passes) > 1
    assert len(recording.live) <= 16


def test_a_request_may_be_cancelled_between_any_two_steps(crowded: Bench) -> None:
    """Its cache is free at once: each time the next one needs all there is."""
    prompt = list(b"def f(a):\n    return a\n" * 3)
    plain = crowded.plain(prompt, max_tokens=12, ignore_eos=True)
    recording: Any = crowded.engine.runner
    for stop in range(12):
        crowded.use(Scripted(lambda output, limit: plain.token_ids[len(output) :][: min(limit, 1)]))
        handle = crowded.engine.submit(GenerationRequest(prompt_ids=prompt, max_tokens=12, ignore_eos=True))
        got: list[int] = []
        for count, step in enumerate(handle):
            got += step.token_ids
            if count == stop:
                handle.cancel()
        assert got == plain.token_ids[: len(got)]
        assert handle.stats is not None
        assert handle.stats.finish_reason in ("cancelled", "length")
        assert handle.stats.completion_tokens == len(got)
        assert len(recording.live) <= KEPT
        crowded.use(oracle([]))
        big = GenerationRequest(prompt_ids=[9], max_tokens=crowded.engine.max_context - 1, ignore_eos=True)
        last = crowded.engine.submit(big)
        next(last)
        last.cancel()
        list(last)


def test_a_waiting_request_may_be_cancelled_or_outlived(crowded: Bench) -> None:
    """In the line for memory, behind one that takes all of it."""
    first = crowded.engine.submit(GenerationRequest(prompt_ids=[1], ignore_eos=True))
    next(first)
    line = [
        crowded.engine.submit(GenerationRequest(prompt_ids=[k], max_tokens=800, ignore_eos=True))
        for k in range(2, 12)
    ]
    for handle in line[::2]:
        handle.cancel()
    for handle in line[::2]:
        assert [step.finish_reason for step in handle][-1] == "cancelled"
    first.cancel()
    list(first)
    next(line[1])
    crowded.engine.close()
    for handle in line[3::2]:
        with pytest.raises(EngineClosed):
            list(handle)
