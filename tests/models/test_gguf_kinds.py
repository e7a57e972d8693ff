"""GGUF files of any quantisation, vocabulary and rotary scaling become the model that they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors.torch import load_file

from specclient_engine import Engine, GenerationRequest
from specclient_engine.errors import ModelCorrupt
from specclient_engine.models.gguf_folder import convert_gguf
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.fused_aten import AtenRunner
from specclient_engine.runner.weights import read_shape
from specclient_engine.tokenizer import FolderTokenizer
from tests.engine.fused_models import FAMILIES, SIZES
from tests.engine.test_tokenizer import byte_fallback, byte_level
from tests.models.gguf_writing import byte_level_vocabulary, sentencepiece_vocabulary, write_gguf

VOCABULARY = byte_level_vocabulary(byte_level())
TOKENS = 306
ARCHITECTURES = {"qwen2": "qwen2", "qwen3": "qwen3"}


def tiny(family: str, **sizes: Any) -> Any:
    """A model of the family whose weights are all numbers of bfloat16, which is what is stored."""
    model_class, config_class, changes = FAMILIES[family]
    torch.manual_seed(3)
    wanted = {**SIZES, "vocab_size": TOKENS, "intermediate_size": 192, **changes, **sizes}
    model = model_class(config_class(**wanted)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            scaled = parameter * 4 if parameter.dim() > 1 else 1 + 0.2 * torch.randn_like(parameter)
            parameter.copy_(scaled.bfloat16().float())
    return model


def logits_of(folder: Path, ids: list[int]) -> torch.Tensor:
    shape = read_shape(folder)
    assert not isinstance(shape, str), shape
    runner = AtenRunner(folder, shape, "float32", torch.device("cpu"), None, None)
    return runner.forward([Chunk(runner.allocate(len(ids)), 0, ids)])


def same_as(model: Any, folder: Path) -> None:
    ids = [(7 * at) % TOKENS for at in range(150)]
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(logits_of(folder, ids), want, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.BF16])
@pytest.mark.parametrize(
    "family", ["llama", "llama-biases", "smollm", "mistral-head-apart", "qwen2", "qwen3"]
)
def test_the_converted_model_computes_what_the_model_computed(
    family: str, kind: Kind, tmp_path: Path
) -> None:
    model = tiny(family)
    file = write_gguf(tmp_path / "m.gguf", ARCHITECTURES.get(family, "llama"), model, VOCABULARY, kind)
    convert_gguf(file, tmp_path / "out")
    same_as(model, tmp_path / "out")


@pytest.mark.parametrize(
    "kind",
    [
        *(Kind.F16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1),
        *(Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K),
    ],
    ids=lambda kind: kind.name,
)
def test_any_quantisation_becomes_its_own_numbers(kind: Kind, tmp_path: Path) -> None:
    model = tiny("qwen2", hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_attention_heads=4)
    file = write_gguf(tmp_path / "m.gguf", "qwen2", model, VOCABULARY, kind)
    convert_gguf(file, tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    by_name = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    for name, stored in (
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight"),
        ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
    ):
        tensor = by_name[stored]
        assert tensor.tensor_type == kind
        want = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
        assert torch.equal(found[name], want.bfloat16())
        assert found[name].isfinite().all()
    assert logits_of(tmp_path / "out", [1, 2, 3]).isfinite().all()


def test_the_rule_of_llama_3_is_read_back_from_llama_cpps_table_of_it(tmp_path: Path) -> None:
    rule = {**FAMILIES["llama-llama3-rope"][2]["rope_parameters"], "original_max_position_embeddings": 8192}
    model = tiny("llama", rope_parameters=rule, head_dim=64)
    unscaled = 10000.0 ** (-np.arange(32) / 32)
    table = (unscaled / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)
    assert table.max() == pytest.approx(8.0)

    def with_table(writer: Any) -> None:
        writer.add_tensor("rope_freqs.weight", table)

    file = write_gguf(tmp_path / "m.gguf", "llama", model, VOCABULARY, more=with_table)
    convert_gguf(file, tmp_path / "out")
    same_as(model, tmp_path / "out")

    def with_another(writer: Any) -> None:
        writer.add_tensor("rope_freqs.weight", np.linspace(1, 9, 32, dtype=np.float32))

    file = write_gguf(tmp_path / "other.gguf", "llama", model, VOCABULARY, more=with_another)
    with pytest.raises(ModelCorrupt, match=r"rope_freqs\.weight.* follows no known rule"):
        convert_gguf(file, tmp_path / "no")


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_a_stated_rotary_scaling_is_kept(kind: str, tmp_path: Path) -> None:
    rule: dict[str, Any] = {"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0}
    if kind == "yarn":
        rule["original_max_position_embeddings"] = 512
    model = tiny("qwen2", rope_parameters=rule)

    def stated(writer: Any) -> None:
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(4.0)
        if kind == "yarn":
            writer.add_rope_scaling_orig_ctx_len(512)

    convert_gguf(write_gguf(tmp_path / "m.gguf", "qwen2", model, VOCABULARY, more=stated), tmp_path / "out")
    same_as(model, tmp_path / "out")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE),
            r"scales its rotary embedding by 'longrope', which cannot be converted: give",
        ),
        (lambda writer: writer.add_rope_dimension_count(8), r"turns 8 of a head's 16 numbers, .*: give"),
        (lambda writer: writer.add_uint16("split.count", 3), r"m\.gguf is one of the 3 parts .*: join them"),
    ],
    ids=["scaling", "half a head", "a part"],
)
def test_what_would_be_lost_is_refused(more: Any, words: str, tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", "qwen2", tiny("qwen2"), VOCABULARY, more=more)
    with pytest.raises(ModelCorrupt, match=words):
        convert_gguf(file, tmp_path / "out")


def test_byte_level_vocabularies_come_with_their_added_tokens(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", "llama", tiny("llama"), VOCABULARY)
    convert_gguf(file, tmp_path / "out")
    tokenizer = FolderTokenizer(tmp_path / "out")
    assert tokenizer.vocab_size == TOKENS
    assert tokenizer.eos_ids == {1, 2}
    text = "def rename(foo):\r\n\t\treturn <think> Ünï 中文 🎉  12"
    ids = tokenizer.encode_prompt(text + "<|end|>")
    assert tokenizer.decode(ids) == text
    assert ids[-1] == 2
    assert TOKENS - 1 in ids
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("pre", ["smollm", "starcoder"])
def test_numbers_are_cut_as_the_vocabulary_was_learned(pre: str, tmp_path: Path) -> None:
    """Two spaces before a digit are one piece there: a number never takes a space along."""
    vocabulary = byte_level_vocabulary(byte_level(), pre)
    convert_gguf(write_gguf(tmp_path / "m.gguf", "llama", tiny("llama"), vocabulary), tmp_path / "out")
    spec = json.loads((tmp_path / "out" / "tokenizer.json").read_text())
    kinds = [part["type"] for part in spec["pre_tokenizer"]["pretokenizers"]]
    assert kinds == ["Digits", "ByteLevel"]
    tokenizer = FolderTokenizer(tmp_path / "out")
    pieces = [tokenizer.token_bytes(token) for token in tokenizer.encode("a  12")]
    assert pieces == [b"a", b"  ", b"1", b"2"]


def test_sentencepiece_vocabularies_keep_spaces_and_bytes(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary(byte_fallback())
    file = write_gguf(tmp_path / "m.gguf", "llama", tiny("llama", vocab_size=295), vocabulary)
    convert_gguf(file, tmp_path / "out")
    tokenizer = FolderTokenizer(tmp_path / "out")
    assert tokenizer.eos_ids == {2}
    for text in ("ab  a", " a\n b", "é🎉 中", "\r\n\tx"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode_prompt("a", add_special_tokens=True)[0] == 1


def test_a_converted_model_serves(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", "qwen2", tiny("qwen2"), VOCABULARY, Kind.Q8_0)
    with Engine.load(file, dtype="float32") as engine:
        prompt = engine.text_prompt("def rename(foo, bar):")

        def ask(**wanted: Any) -> list[int]:
            request = GenerationRequest(prompt_ids=prompt, max_tokens=30, ignore_eos=True, **wanted)
            return [token for step in engine.submit(request) for token in step.token_ids]

        plain = ask(speculation="off")
        assert ask(predictions=[engine.tokenizer.decode(plain)]) == plain


def test_weights_that_are_not_the_configurations_are_refused(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", "qwen2", tiny("qwen2"), VOCABULARY)
    convert_gguf(file, tmp_path / "out")
    path = tmp_path / "out" / "config.json"
    config = json.loads(path.read_text())
    for change, words in (
        ({"num_key_value_heads": 3}, r"model\.layers\.0\.key are of shape \(32, 96\).*wants \(48, 96\)"),
        ({"intermediate_size": 64}, r"gate are of shape \(192, 96\).*wants \(64, 96\)"),
        ({"vocab_size": 999}, r"model\.embed_tokens\.weight are of shape \(306, 96\)"),
    ):
        path.write_text(json.dumps(config | change))
        with pytest.raises(ModelCorrupt, match=words):
            logits_of(tmp_path / "out", [1, 2])


@pytest.mark.parametrize(
    ("key", "other"), [(b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenz"), (b"bar", b"baz")]
)
def test_a_vocabulary_that_makes_no_tokenizer_is_refused(key: bytes, other: bytes, tmp_path: Path) -> None:
    """The libraries below raise what they stumble over: a KeyError, or Exception itself."""
    file = write_gguf(tmp_path / "m.gguf", "llama", tiny("llama"), VOCABULARY)
    content = file.read_bytes()
    assert key in content
    file.write_bytes(content.replace(key, other, 1))
    with pytest.raises(ModelCorrupt, match=r"makes no model .*: fetch it again"):
        convert_gguf(file, tmp_path / "out")
