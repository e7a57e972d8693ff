"""A configuration means to the engine what it means to transformers, which is not asked while serving."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fused_models import FAMILIES, save_model
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from specclient_engine.errors import ModelCorrupt
from specclient_engine.runner.weights import ModelShape, read_shape

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 1000,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
WRITTEN: list[dict[str, Any]] = [
    {"model_type": "llama"},
    {
        "model_type": "llama",
        "rope_theta": 500_000,
        "rope_scaling": LLAMA3,
        "max_position_embeddings": 131_072,
    },
    {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 3.0}, "num_key_value_heads": 2},
    {"model_type": "llama", "rope_scaling": {"rope_type": "dynamic", "factor": 2.5}, "rms_norm_eps": 1e-5},
    {"model_type": "llama", "head_dim": 128, "tie_word_embeddings": True, "rope_scaling": None},
    {"model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 123_456.0}},
    {"model_type": "mistral", "sliding_window": None, "num_key_value_heads": 1},
    {"model_type": "mistral", "sliding_window": None, "rope_theta": 1e6, "head_dim": 32},
    {"model_type": "qwen2", "num_key_value_heads": 2, "rope_theta": 1_000_000.0, "rope_scaling": YARN},
    {
        "model_type": "qwen2",
        "num_key_value_heads": 4,
        "rope_scaling": {**YARN, "beta_fast": 16, "beta_slow": 2, "truncate": False, "attention_factor": 1.3},
    },
    {
        "model_type": "qwen2",
        "num_key_value_heads": 4,
        "rope_scaling": {**YARN, "mscale": 0.7, "mscale_all_dim": 0.9, "factor": 40},
    },
    {"model_type": "qwen2", "num_key_value_heads": 4, "rope_scaling": {**YARN, "factor": None}},
    {
        "model_type": "qwen2",
        "num_key_value_heads": 4,
        "original_max_position_embeddings": 512,
        "rope_scaling": YARN,
    },
    {"model_type": "qwen3", "num_key_value_heads": 4, "use_sliding_window": False, "sliding_window": 4096},
    {"model_type": "qwen3", "num_key_value_heads": 4, "head_dim": 64, "layer_types": ["full_attention"] * 2},
]


def write(folder: Path, values: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps({**SIZES, **values}), encoding="utf-8")


def assert_as_transformers(folder: Path) -> None:
    config = AutoConfig.from_pretrained(folder)
    shape = read_shape(folder)
    assert isinstance(shape, ModelShape), shape
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    assert (shape.layers, shape.hidden) == (config.num_hidden_layers, config.hidden_size)
    assert (shape.intermediate, shape.vocab) == (config.intermediate_size, config.vocab_size)
    assert (shape.heads, shape.kv_heads, shape.head_dim) == (
        heads,
        config.num_key_value_heads or heads,
        width,
    )
    assert (shape.max_positions, shape.eps) == (config.max_position_embeddings, config.rms_norm_eps)
    assert shape.tied is bool(config.tie_word_embeddings)
    rope = config.rope_parameters
    if rope["rope_type"] == "default":
        expected = 1.0 / (rope["rope_theta"] ** (torch.arange(0, width, 2).float() / width))
        scale = 1.0
    else:
        expected, scale = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu")
    assert torch.equal(shape.inv_freq, expected)
    assert shape.rope_scale == scale


@pytest.mark.parametrize("values", WRITTEN, ids=range(len(WRITTEN)))
def test_sizes_and_frequencies_are_those_of_transformers_to_the_bit(
    values: dict[str, Any], tmp_path: Path
) -> None:
    write(tmp_path, values)
    assert_as_transformers(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_transformers_saves_is_read_likewise(family: str, tmp_path: Path) -> None:
    save_model(family, tmp_path)
    assert_as_transformers(tmp_path)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"model_type": "gpt2"}, "architecture is gpt2"),
        ({}, "architecture is not named"),
        ({"model_type": "mistral"}, "window of 4096 tokens"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "window of 4096 tokens"),
        ({"model_type": "qwen2", "layer_types": ["sliding_attention"] * 2}, "do not attend to the whole"),
        ({"model_type": "llama", "quantization_config": {"bits": 4}}, "stored quantised"),
        ({"model_type": "llama", "partial_rotary_factor": 0.5}, "does not cover the whole head"),
        ({"model_type": "llama", "rope_scaling": {"rope_type": "longrope"}}, "rotary scaling is longrope"),
        ({"model_type": "llama", "rope_parameters": {"full_attention": {}}}, "kind by kind of layer"),
    ],
)
def test_what_the_fused_runners_cannot_compute_is_said(
    values: dict[str, Any], why: str, tmp_path: Path
) -> None:
    write(tmp_path, values)
    refusal = read_shape(tmp_path)
    assert isinstance(refusal, str)
    assert why in refusal


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1"),
        ({"rope_scaling": {"type": "linear"}}, "factor is missing"),
        ({"rope_scaling": {**LLAMA3, "factor": "8"}}, "factor is '8'"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_named(
    values: dict[str, Any], what: str, tmp_path: Path
) -> None:
    write(tmp_path, {"model_type": "llama", **values})
    with pytest.raises(ModelCorrupt, match=what):
        read_shape(tmp_path)


@pytest.mark.parametrize("family", ["qwen2", "llama-llama3-rope"])
def test_serving_through_the_fused_path_imports_no_transformers(family: str, tmp_path: Path) -> None:
    """It would cost a third of what the engine may hold beside its weights."""
    save_model(family, tmp_path)
    code = f"""
import sys
from specclient_engine.runner import load_runner
from specclient_engine.runner.base import Chunk
runner = load_runner(__import__("pathlib").Path({str(tmp_path)!r}), device="cpu")
runner.forward([Chunk(runner.allocate(8), 0, [1, 2, 3])])
print(sorted({{"transformers", "accelerate", "sympy", "torch._dynamo", "pydantic"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout
