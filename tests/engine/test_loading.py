"""An engine from a model folder: what it needs is known before any work is done."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import Answer, RecordingRunner, tiny_model
from safetensors.torch import save_file
from test_tokenizer import byte_level

from specclient_engine import Engine, GenerationRequest, Progress, SamplingParams
from specclient_engine.drafters.eagle import EagleHead
from specclient_engine.errors import EngineError, ModelCorrupt, NotEnoughMemory, UnsupportedRequest
from specclient_engine.measuring import measure_cost
from specclient_engine.models import cache_root
from specclient_engine.runner import memory, native_build
from specclient_engine.runner.fused_loading import load_fused
from specclient_engine.runner.fused_native import NativeRunner
from specclient_engine.runner.native_build import native_library
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.timings import Sample, kept_timings

GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}


def save_model(folder: Path, kind: str = "gpt2", seed: int = 0, **sizes: Any) -> Path:
    folder.mkdir()
    tiny_model(kind, seed=seed, vocab_size=400, **sizes).save_pretrained(folder)
    byte_level().save(str(folder / "tokenizer.json"))
    config = {"chat_template": "{{ messages[0].content }}", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_model(tmp_path / "model", **GPT)


def ask(engine: Engine, **wanted: Any) -> Answer:
    prompt = engine.chat_prompt([{"role": "user", "content": "def rename(foo, bar):"}])
    request = GenerationRequest(prompt_ids=prompt, max_tokens=24, ignore_eos=True, **wanted)
    return Answer.read(engine.submit(request))


def test_a_folder_of_an_architecture_without_fused_path_runs(folder: Path) -> None:
    seen: list[Progress] = []
    with Engine.load(folder, dtype="float32", progress=seen.append) as engine:
        plain = ask(engine, speculation="off")
        known = ask(engine, predictions=[plain.text])
        assert known.token_ids == plain.token_ids
        assert engine.max_context == 256
    assert {progress.stage for progress in seen} == {"load", "measure"}


def test_a_draft_model_from_a_folder_takes_part(folder: Path, tmp_path: Path) -> None:
    with Engine.load(folder, dtype="float32", draft_model=folder, max_context=128) as engine:
        assert engine.max_context == 128
        assert ask(engine).token_ids == ask(engine, speculation="off").token_ids


def test_weights_that_do_not_fit_are_refused_with_figures(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = memory.parameters(folder) * 4
    assert needed == sum(p.numel() for p in tiny_model("gpt2", vocab_size=400, **GPT).parameters()) * 4
    monkeypatch.setattr(memory, "available_bytes", lambda _: needed - 1)
    with pytest.raises(NotEnoughMemory, match=r"weights of model take 0\.00 GiB"):
        Engine.load(folder, dtype="float32")


def test_what_the_plain_path_cannot_do_is_said(folder: Path) -> None:
    with pytest.raises(UnsupportedRequest, match="int8"):
        Engine.load(folder, dtype="int8")
    (folder / "model.safetensors").write_bytes(b"\x10")
    with pytest.raises(ModelCorrupt, match="model"):
        Engine.load(folder, dtype="float32")


def test_an_eagle_head_from_a_folder_takes_part(tmp_path: Path) -> None:
    target = save_model(tmp_path / "model", "llama", num_hidden_layers=6)
    head = tmp_path / "head"
    head.mkdir()
    config = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "draft_vocab_size": 100}
    (head / "config.json").write_text(json.dumps(config))
    with Engine.load(target, dtype="float32") as engine:
        plain = ask(engine, speculation="off")
    embeddings = torch.nn.Embedding(400, 32)
    module = EagleHead(config, target_layers=6, target_hidden=32, embeddings=embeddings)
    weights = {name: value for name, value in module.state_dict().items() if "embed" not in name}
    save_file(weights, head / "model.safetensors")
    with Engine.load(target, dtype="float32", draft_model=head) as engine:
        assert ask(engine).token_ids == plain.token_ids
    with pytest.raises(UnsupportedRequest, match="MTP"):
        Engine.load(target, dtype="float32", draft_model="mtp")


@pytest.mark.parametrize("context", [1, 40, 256])
def test_the_cost_of_passes_is_measured_in_any_context(context: int) -> None:
    runner = RecordingRunner(PlainRunner(tiny_model(), max_context=context))
    cost = measure_cost(runner)  # type: ignore[arg-type]
    assert cost.seconds(1, 0) > 0
    assert max(start + length for chunks in runner.passes for start, length, _ in chunks) <= context
    assert not runner.live


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_the_fused_path_is_lossless_end_to_end(kind: str, dtype: Any, tmp_path: Path) -> None:
    if dtype == "int8" and isinstance(native_library(), str):
        pytest.skip(str(native_library()))
    folder = save_model(tmp_path / "model", kind, num_key_value_heads=2, hidden_size=64, head_dim=16)
    with Engine.load(folder, dtype=dtype) as engine:
        assert not isinstance(engine.runner, PlainRunner)
        for sampling in (SamplingParams(), SamplingParams(temperature=1.0, seed=2)):
            plain = ask(engine, speculation="off", sampling=sampling)
            for known in (plain.text, plain.text[5:9] + "xyz" + plain.text[9:], "unrelated"):
                assert ask(engine, predictions=[known], sampling=sampling).token_ids == plain.token_ids


@pytest.mark.parametrize(
    ("device", "words"),
    [("banana", "is none that the engine runs on"), ("meta", "is none that"), ("cuda:99", "is not there")],
)
def test_a_device_that_is_not_there_is_refused_by_name(folder: Path, device: str, words: str) -> None:
    with pytest.raises(UnsupportedRequest, match=f"{device}.*{words}"):
        Engine.load(folder, device=device)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"{}"),
        ("model.safetensors", b""),
        ("model.safetensors", b"\x08\0\0\0\0\0\0\0{}"),
        ("chat_template.jinja", b"\xff\xfe"),
    ],
)
def test_a_broken_file_is_told_with_its_folder(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(EngineError) as caught:
        Engine.load(folder, dtype="float32")
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_passes_cost_is_kept_for_the_next_start(tmp_path: Path) -> None:
    if isinstance(native_library(), str):
        pytest.skip(str(native_library()))
    sizes = {"num_key_value_heads": 2, "hidden_size": 64, "head_dim": 16}
    folder = save_model(tmp_path / "model", "llama", **sizes)
    found: list[list[Sample]] = []
    for _ in range(2):
        with Engine.load(folder, dtype="float32") as engine:
            kept = kept_timings(engine.runner)
            assert kept is not None
            found.append(kept.read())
        (file,) = (cache_root() / "timings").iterdir()
    assert {(1, 0), (8, 0), (32, 0)} <= {(rows, context) for rows, context, _ in found[0]}
    assert file.read_text() == json.dumps(found[1])


def test_timings_are_kept_apart_by_all_that_they_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = native_library()
    if isinstance(library, str):
        pytest.skip(library)
    sizes = {"num_key_value_heads": 2, "hidden_size": 64, "head_dim": 16}
    folder = save_model(tmp_path / "model", "llama", **sizes)
    wider = save_model(tmp_path / "wider", "llama", **sizes | {"intermediate_size": 96})
    runners = [
        load_fused(where, dtype=kind, max_context=context)
        for where, kind, context in (
            (folder, "float32", None),
            (folder, "bfloat16", None),
            (folder, "float32", 64),
            (wider, "float32", None),
        )
    ]
    assert all(isinstance(runner, NativeRunner) for runner in runners)
    assert len({runner.cost_identity for runner in runners}) == len(runners)  # type: ignore[union-attr]
    monkeypatch.setenv("SPECCLIENT_CACHE", "~nosuchuser/x")
    assert kept_timings(runners[0]) is None  # type: ignore[arg-type]
    assert kept_timings(RecordingRunner(PlainRunner(tiny_model(), max_context=64))) is None  # type: ignore[arg-type]


def test_the_search_for_garbage_goes_on_after_a_load_and_after_one_that_failed(folder: Path) -> None:
    assert gc.isenabled()
    during: list[bool] = []
    with Engine.load(folder, dtype="float32", progress=lambda _: during.append(gc.isenabled())):
        assert gc.isenabled()
    with pytest.raises(EngineError):
        Engine.load(folder / "none")
    assert gc.isenabled()
    assert set(during) == {False}
    gc.disable()
    try:
        with Engine.load(folder, dtype="float32"):
            assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_compiled_library_is_found_without_waiting_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(native_library(), str):
        pytest.skip(str(native_library()))

    def refuse(path: Path) -> None:
        raise AssertionError(f"{path} is there already")

    native_library.cache_clear()
    native_library()  # compiled into the cache of this test
    monkeypatch.setattr(native_build, "locked", refuse)
    native_library.cache_clear()
    assert not isinstance(native_library(), str)
