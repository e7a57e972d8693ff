"""The fused runners compute what transformers computes, whatever the chunks."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fused_models import FAMILIES, SIZES, save, save_model
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from specclient_engine.errors import NotEnoughMemory, UnsupportedRequest
from specclient_engine.runner import linear, threads
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.fused import FusedRunner
from specclient_engine.runner.fused_aten import AtenRunner
from specclient_engine.runner.fused_loading import load_fused
from specclient_engine.runner.fused_native import NativeRunner
from specclient_engine.runner.kv import BLOCK
from specclient_engine.runner.native_build import native_library
from specclient_engine.runner.weights import read_shape

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
Load = Callable[..., FusedRunner]


def aten(folder: Path, kind: str, device: str = "cpu") -> FusedRunner:
    if kind == "int8":
        pytest.skip("int8 is the kernels' alone")
    shape = read_shape(folder)
    assert not isinstance(shape, str)
    return AtenRunner(folder, shape, kind, torch.device(device), None, None)


def native(folder: Path, kind: str, device: str = "cpu") -> FusedRunner:
    library = native_library()
    if isinstance(library, str):
        pytest.skip(library)
    if device != "cpu":
        pytest.skip("the kernels are the processor's")
    shape = read_shape(folder)
    assert not isinstance(shape, str)
    return NativeRunner(library, folder, shape, kind, None, None)


LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 8,
    "long_factor": [2.0] * 8,
    "original_max_position_embeddings": 64,
}
RUNNERS: dict[str, Load] = {"aten": aten, "native": native}


@pytest.fixture(params=list(RUNNERS))
def load(request: pytest.FixtureRequest) -> Load:
    return RUNNERS[request.param]


def reference(model: Any, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model(torch.tensor([ids])).logits[0].float()
    return logits


def some_ids(count: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, SIZES["vocab_size"], (count,), generator=generator).tolist()


def whole(runner: FusedRunner, ids: list[int]) -> torch.Tensor:
    slot = runner.allocate(len(ids))
    logits = runner.forward([Chunk(slot, 0, ids)]).cpu().clone()
    runner.release(slot)
    return logits


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("family", list(FAMILIES))
def test_logits_equal_those_of_transformers(family: str, device: str, load: Load, tmp_path: Path) -> None:
    model = save_model(family, tmp_path)
    ids = some_ids(700)
    runner = load(tmp_path, "float32", device)
    torch.testing.assert_close(whole(runner, ids), reference(model, ids), atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", ["bfloat16", "int8"])
@pytest.mark.parametrize("family", ["llama-biases", "llama-odd-sizes", "qwen2", "qwen3"])
def test_narrow_kinds_stay_close(family: str, kind: str, load: Load, tmp_path: Path) -> None:
    model = save_model(family, tmp_path)
    ids = some_ids(120)
    got, want = whole(load(tmp_path, kind), ids), reference(model, ids)
    error = (got - want).norm() / want.norm()
    assert error < 0.1


@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("family", ["smollm", "qwen2", "qwen3", "llama-odd-sizes"])
def test_a_row_does_not_depend_on_the_rows_beside_it(
    family: str, kind: str, load: Load, tmp_path: Path
) -> None:
    """Equality to the bit is what makes a verified draft the same as plain decoding."""
    save_model(family, tmp_path)
    runner = load(tmp_path, kind)
    ids = some_ids(600)
    want = whole(runner, ids)
    for size in (1, 2, 3, 5, 8, 13, 16, 33, 64, 127, 128):
        slot = runner.allocate(len(ids))
        first = 440
        runner.forward([Chunk(slot, 0, ids[:first], first)])
        for start in range(first, min(len(ids), first + 3 * size), size):
            got = runner.forward([Chunk(slot, start, ids[start : start + size])])
            assert torch.equal(got, want[start : start + size]), (size, start)
        runner.release(slot)


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_prefill_may_be_cut_anywhere(kind: str, load: Load, tmp_path: Path) -> None:
    save_model("qwen2", tmp_path)
    runner = load(tmp_path, kind)
    ids = some_ids(530)
    want = whole(runner, ids)[-1]
    for cut in (1, 7, 255, 256, 257, 529):
        slot = runner.allocate(len(ids))
        assert runner.forward([Chunk(slot, 0, ids[:cut], cut)]).shape == (0, SIZES["vocab_size"])
        got = runner.forward([Chunk(slot, cut, ids[cut:], len(ids) - cut - 1)])
        assert torch.equal(got[0], want), cut
        runner.release(slot)


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_requests_in_one_pass_do_not_see_one_another(kind: str, load: Load, tmp_path: Path) -> None:
    save_model("llama", tmp_path)
    runner = load(tmp_path, kind)
    texts = [some_ids(count, seed) for seed, count in enumerate((300, 41, 7, 520))]
    alone = [whole(runner, ids) for ids in texts]
    slots = [runner.allocate(len(ids)) for ids in texts]
    tails = (1, 20, 7, 65)
    heads = [
        Chunk(slot, 0, ids[:-tail], len(ids) - tail)
        for slot, ids, tail in zip(slots, texts, tails, strict=True)
        if len(ids) > tail
    ]
    assert runner.forward(heads).shape[0] == 0
    chunks = [
        Chunk(slot, len(ids) - tail, ids[-tail:], tail // 2)
        for slot, ids, tail in zip(slots, texts, tails, strict=True)
    ]
    got = runner.forward(chunks).split([chunk.rows_wanted for chunk in chunks])
    for logits, want, tail in zip(got, alone, tails, strict=True):
        assert torch.equal(logits, want[len(want) - tail + tail // 2 :])


def test_a_smaller_start_rolls_back(load: Load, tmp_path: Path) -> None:
    save_model("qwen2", tmp_path)
    runner = load(tmp_path, "float32")
    ids, wrong = some_ids(300), some_ids(80, 1)
    slot = runner.allocate(400)
    runner.forward([Chunk(slot, 0, ids[:200], 200)])
    runner.forward([Chunk(slot, 200, wrong)])
    got = runner.forward([Chunk(slot, 200, ids[200:])])
    assert torch.equal(got, whole(runner, ids)[200:])


def test_a_stale_cache_that_is_not_a_number_is_never_read(load: Load, tmp_path: Path) -> None:
    save_model("qwen2", tmp_path)
    runner = load(tmp_path, "float32")
    slot = runner.allocate(300)
    ids = some_ids(20)
    runner.forward([Chunk(slot, 0, some_ids(290, 3))])
    assert runner.forward([Chunk(slot, 0, ids)]).isfinite().all()


def test_what_does_not_fit_is_refused_with_the_figures(load: Load, tmp_path: Path) -> None:
    save_model("llama", tmp_path)
    runner = load(tmp_path, "float32")
    with pytest.raises(NotEnoughMemory, match=r"needs \d+ MiB and \d+ MiB are free"):
        runner.allocate(runner.token_capacity + 1)
    slot = runner.allocate(1000)
    runner.release(slot)
    assert runner.kv.tokens_taken == 0


def test_the_compiled_kernels_keep_rows_apart_in_bfloat16_too(tmp_path: Path) -> None:
    save_model("qwen2", tmp_path)
    runner = native(tmp_path, "bfloat16")
    ids = some_ids(200)
    want = whole(runner, ids)
    slot = runner.allocate(len(ids))
    runner.forward([Chunk(slot, 0, ids[:90], 90)])
    for start, end in ((90, 91), (91, 107), (107, 108), (108, 200)):
        assert torch.equal(runner.forward([Chunk(slot, start, ids[start:end])]), want[start:end])


def test_threads_are_chosen_by_measuring_and_change_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is said to have eight; each count's time is made up."""
    save_model("qwen2", tmp_path)
    runner = native(tmp_path, "float32")
    assert isinstance(runner, NativeRunner)
    ids = some_ids(120)
    want = whole(runner, ids)
    assert threads.choose_threads(runner) == runner.threads == 1, "one or two are not worth a measurement"
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    runner = native(tmp_path, "float32")
    assert isinstance(runner, NativeRunner)
    for count in (8, 4, 2, 3, 1):
        runner.threads = count
        assert torch.equal(whole(runner, ids), want)
    for quickest in (8, 4, 2):
        runner.threads = 8
        monkeypatch.setattr(threads, "_seconds", lambda _, __, count, best=quickest: 1.0 + (count != best))
        assert threads.choose_threads(runner) == runner.threads == quickest
    runner.threads = 8
    monkeypatch.setattr(threads, "_seconds", lambda _, __, count: 0.96 if count < 8 else 1.0)
    assert threads.choose_threads(runner) == 8, "a small difference is noise"
    monkeypatch.undo()
    runner.threads = 8
    assert threads.choose_threads(runner) in (8, 4, 2)
    assert torch.equal(whole(runner, ids), want)


def test_memory_does_not_grow_while_serving(load: Load, tmp_path: Path) -> None:
    """The workspace is bounded by the rows of a pass, whatever the length of the prompt."""
    save_model("qwen2", tmp_path)
    runner = load(tmp_path, "float32")
    slot = runner.allocate(2048)
    ids = some_ids(2000)

    def growth() -> int:
        before = resident_bytes()
        for _ in range(10):
            runner.forward([Chunk(slot, 0, ids, 1990)])
            runner.forward([Chunk(slot, 1990, ids[-10:])])
        return resident_bytes() - before

    # What grows does so every time; the process may take memory of its own at any one of them.
    assert any(growth() < 4 << 20 for _ in range(4))


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int8"])
def test_the_kind_asked_for_is_the_kind_computed(dtype: Any, tmp_path: Path) -> None:
    if dtype == "int8" and isinstance(native_library(), str):
        pytest.skip(native_library())
    save_model("qwen2", tmp_path)
    runner = load_fused(tmp_path, dtype=dtype)
    assert runner is not None
    assert runner.kind == dtype


def test_auto_takes_what_is_quickest_of_what_keeps_the_answers(tmp_path: Path) -> None:
    save_model("qwen2", tmp_path)
    runner = load_fused(tmp_path)
    assert runner is not None
    assert runner.kind in ("bfloat16", "float32")


@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_size": 98, "num_attention_heads": 49, "num_key_value_heads": 1, "head_dim": 4},
        {"head_dim": 320},
    ],
    ids=["shared by 49", "320 wide"],
)
def test_heads_that_the_kernels_do_not_hold_are_computed_without_them(
    sizes: dict[str, int], tmp_path: Path
) -> None:
    model = save(LlamaForCausalLM, LlamaConfig(**{**SIZES, **sizes}), tmp_path)
    runner = load_fused(tmp_path, dtype="float32")
    assert isinstance(runner, AtenRunner)
    ids = some_ids(40)
    torch.testing.assert_close(whole(runner, ids), reference(model, ids), atol=2e-3, rtol=1e-3)


def test_bfloat16_is_computed_where_onednn_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does on processors without instructions for bfloat16."""

    def refuse(*_: Any) -> None:
        raise RuntimeError("bf16 path needs the cpu support avx512bw")

    monkeypatch.setattr(linear, "PrepackedLinear", refuse)
    model = save_model("qwen2", tmp_path)
    ids = some_ids(40)
    got, want = whole(aten(tmp_path, "bfloat16"), ids), reference(model, ids)
    assert (got - want).norm() / want.norm() < 0.1


def test_without_a_compiler_the_framework_computes_and_int8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    save_model("qwen2", tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("SPECCLIENT_CACHE", str(tmp_path / "empty"))
    native_library.cache_clear()
    try:
        with caplog.at_level("INFO", logger="specclient_engine"):
            runner = load_fused(tmp_path, dtype="float32")
        with pytest.raises(UnsupportedRequest, match=r"int8 needs the compiled kernels, and .*: use"):
            load_fused(tmp_path, dtype="int8")
    finally:
        monkeypatch.undo()
        native_library.cache_clear()
    assert isinstance(runner, AtenRunner)
    assert "torch operators (" in caplog.text


@pytest.mark.parametrize(
    ("model_class", "config", "why"),
    [
        (
            LlamaForCausalLM,
            LlamaConfig(**SIZES, rope_parameters=LONG_ROPE),
            "rotary scaling is longrope",
        ),
        (LlamaForCausalLM, LlamaConfig(**SIZES, hidden_act="gelu"), "activation is gelu"),
        (MistralForCausalLM, MistralConfig(**SIZES, sliding_window=64), "window of 64 tokens"),
    ],
)
def test_other_shapes_are_left_to_the_plain_runner(
    model_class: Any, config: Any, why: str, tmp_path: Path
) -> None:
    save(model_class, config, tmp_path)
    assert load_fused(tmp_path) is None
    refusal = read_shape(tmp_path)
    assert isinstance(refusal, str)
    assert why in refusal


def test_sharded_weights_and_limits(tmp_path: Path) -> None:
    model = save_model("llama", tmp_path / "one")
    model.save_pretrained(tmp_path / "many", max_shard_size="100KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 1
    ids = some_ids(30)
    one, many = (load_fused(tmp_path / name, dtype="float32", max_context=64) for name in ("one", "many"))
    assert one is not None
    assert many is not None
    assert torch.equal(whole(one, ids), whole(many, ids))
    assert many.max_context == 64


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_the_files_of_the_weights_are_let_go(load: Load, kind: str, tmp_path: Path) -> None:
    """Mapped files count as the process's memory for as long as one tensor looks into them."""
    save_model("llama", tmp_path)
    runner = load(tmp_path, kind)
    gc.collect()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    assert runner.vocab_size == SIZES["vocab_size"]


def test_room_that_is_not_written_takes_no_memory(tmp_path: Path) -> None:
    """Without a cap on the answer a slot has room for the whole context."""

    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    save_model("llama", tmp_path)
    runner = aten(tmp_path, "float32")
    runner.kv.token_capacity = 1 << 20
    before = held()
    slot = runner.kv.allocate((256 << 20) // runner.kv.bytes_per_token)
    assert held() - before < 32 << 20
    assert not runner.kv[slot][..., :BLOCK, :].any()
