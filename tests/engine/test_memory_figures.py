"""What admission reckons with is what loading and serving really take."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import Bench, RecordingRunner, tiny_model
from fused_models import SIZES, save, save_model
from test_runner_fused import aten, native
from transformers import LlamaConfig, LlamaForCausalLM

from specclient_engine.errors import ContextTooLong, NotEnoughMemory
from specclient_engine.runner import fused_loading, load_runner, memory
from specclient_engine.runner.base import BYTES, Chunk
from specclient_engine.runner.choice import Choice
from specclient_engine.runner.fused import FusedRunner
from specclient_engine.runner.memory import WORKSPACE_BYTES, return_freed_memory
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.runner.weights import read_shape

LARGER: dict[str, Any] = {
    "vocab_size": 20_000,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
}


def held() -> int:
    gc.collect()
    return_freed_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from Linux")
@pytest.mark.parametrize(
    ("load", "kind", "tied"),
    [(native, "bfloat16", True), (native, "int8", True), (aten, "float32", False)],
)
def test_weights_and_cache_take_what_is_reckoned(load: Any, kind: Any, tied: bool, tmp_path: Path) -> None:
    config = LlamaConfig(**{**SIZES, **LARGER, "tie_word_embeddings": tied})
    save(LlamaForCausalLM, config, tmp_path, torch.bfloat16)
    shape = read_shape(tmp_path)
    assert not isinstance(shape, str)
    packed = shape.packed_bytes(BYTES[kind])
    reckoned = packed if load is native else shape.weight_bytes(BYTES[kind], torch.bfloat16)
    # What one runner needs beside its weights, another has taken already.
    load(tmp_path, kind)
    before = held()
    runner: FusedRunner = load(tmp_path, kind)
    taken = held() - before
    assert 0.95 * reckoned - (4 << 20) < taken < 1.1 * reckoned + (24 << 20)
    slot = runner.allocate(1500)
    runner.forward([Chunk(slot, 0, [1], 1)])
    before = held()
    runner.forward([Chunk(slot, 0, [5] * 1500, 1500)])
    cache = 1500 * runner.kv.bytes_per_token
    assert 0.8 * cache < held() - before < 1.5 * cache + (8 << 20)


@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
def test_the_cache_that_is_counted_is_the_cache_that_is_made(kind: str, tmp_path: Path) -> None:
    save_model("llama-odd-sizes", tmp_path)
    for load in (aten, native):
        runner = load(tmp_path, kind)
        slot = runner.allocate(513)
        made = runner.kv[slot]
        assert made.numel() * made.element_size() == runner.kv.tokens_taken * runner.kv.bytes_per_token
        assert runner.kv.tokens_taken == 1024


def test_room_for_the_cache_is_what_weights_and_workspace_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model("llama", tmp_path)
    runner = aten(tmp_path, "float32")
    monkeypatch.setattr("specclient_engine.runner.kv.available_bytes", lambda _: WORKSPACE_BYTES + (10 << 20))
    runner._measure_room()
    assert (
        0 < (10 << 20) - runner.token_capacity * runner.kv.bytes_per_token < 512 * runner.kv.bytes_per_token
    )
    monkeypatch.setattr("specclient_engine.runner.kv.available_bytes", lambda _: WORKSPACE_BYTES - 1)
    runner._measure_room()
    assert runner.token_capacity == 0


def test_weights_that_became_wider_by_choice_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "auto" asks for bfloat16's room at first; where it becomes float32, and tied embeddings are held
    twice, there must be room for that."""
    save_model("smollm", tmp_path)
    shape = read_shape(tmp_path)
    assert not isinstance(shape, str)
    needed = shape.weight_bytes(4, torch.float32)
    assert needed > 2 * 2 * memory.parameters(tmp_path)
    monkeypatch.setattr(fused_loading, "choose", lambda *_: Choice("float32", False))
    monkeypatch.setattr(memory, "available_bytes", lambda _: needed - 1)
    monkeypatch.setattr(fused_loading, "AtenRunner", None)
    with pytest.raises(NotEnoughMemory, match=r"weights of .* take \d+\.\d+ GiB and \d+\.\d+ GiB are free"):
        load_runner(tmp_path)


def test_a_prompt_that_does_not_fit_is_refused_before_any_work() -> None:
    recording = RecordingRunner(PlainRunner(tiny_model()))
    recording.inner.token_capacity = 100
    bench = Bench(recording)
    with pytest.raises(NotEnoughMemory, match=r"120 tokens .* 100: .*load the model again"):
        bench.ask([1] * 120)
    with pytest.raises(ContextTooLong, match=r"300 tokens .* 256"):
        bench.ask([1] * 300)
    assert recording.passes == []
    assert not recording.live
    bench.engine.close()
