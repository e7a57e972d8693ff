"""Tiny random models of the Llama-shaped families, saved as the published ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SIZES: dict[str, Any] = {
    "vocab_size": 301,
    "hidden_size": 96,
    "intermediate_size": 200,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
YARN_ROPE = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 512,
}


def rope(kind: str, factor: float = 4.0) -> dict[str, Any]:
    """A rotary scaling that has no more to say."""
    return {"rope_type": kind, "rope_theta": 10000.0, "factor": factor}


FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (LlamaForCausalLM, LlamaConfig, {}),
    "llama-biases": (LlamaForCausalLM, LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "llama-llama3-rope": (LlamaForCausalLM, LlamaConfig, {"rope_parameters": LLAMA3_ROPE}),
    "llama-yarn-rope": (LlamaForCausalLM, LlamaConfig, {"rope_parameters": YARN_ROPE}),
    "llama-linear-rope": (LlamaForCausalLM, LlamaConfig, {"rope_parameters": rope("linear")}),
    "llama-dynamic-rope": (LlamaForCausalLM, LlamaConfig, {"rope_parameters": rope("dynamic")}),
    "llama-all-heads": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 6}),
    "llama-wide-heads": (LlamaForCausalLM, LlamaConfig, {"head_dim": 128}),
    "llama-odd-sizes": (
        LlamaForCausalLM,
        LlamaConfig,
        {"hidden_size": 60, "intermediate_size": 109, "num_attention_heads": 3, "num_key_value_heads": 1},
    ),
    "llama-shared-by-5": (
        LlamaForCausalLM,
        LlamaConfig,
        {"hidden_size": 95, "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 14},
    ),
    "llama-shared-by-17": (
        LlamaForCausalLM,
        LlamaConfig,
        {
            "hidden_size": 102,
            "num_attention_heads": 34,
            "num_key_value_heads": 2,
            "head_dim": 6,
            "vocab_size": 333,
        },
    ),
    "smollm": (
        LlamaForCausalLM,
        LlamaConfig,
        {"tie_word_embeddings": True, "num_attention_heads": 3, "num_key_value_heads": 1},
    ),
    "mistral": (MistralForCausalLM, MistralConfig, {"sliding_window": None}),
    "mistral-head-apart": (MistralForCausalLM, MistralConfig, {"sliding_window": None, "head_dim": 24}),
    "qwen2-windows-off": (
        Qwen2ForCausalLM,
        Qwen2Config,
        {"sliding_window": 32, "use_sliding_window": False},
    ),
    "qwen3-biases-untied": (
        Qwen3ForCausalLM,
        Qwen3Config,
        {"attention_bias": True, "tie_word_embeddings": False, "head_dim": 18},
    ),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {"tie_word_embeddings": True}),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {"head_dim": 32}),
}


def save_model(family: str, folder: Path, *, dtype: torch.dtype = torch.float32) -> Any:
    """Makes the family's model, with norms and biases that matter, saves it, and returns it."""
    model_class, config_class, changes = FAMILIES[family]
    return save(model_class, config_class(**{**SIZES, **changes}), folder, dtype)


def save(model_class: Any, config: Any, folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """Saves a random model of `config` in `folder` and returns it."""
    torch.manual_seed(7)
    model = model_class(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                centre = 1.0 if "norm" in name else 0.0
                parameter.copy_(centre + 0.2 * torch.randn_like(parameter))
            else:
                parameter.mul_(4)
    model = model.to(dtype).eval()
    model.save_pretrained(folder)
    return model
