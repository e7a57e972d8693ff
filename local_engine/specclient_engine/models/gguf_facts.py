"""What a GGUF file says of a Llama-shaped model that transformers does not read from it.

The keys are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, the pre-tokenizers those of
llama.cpp (`src/llama-vocab.cpp`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specclient_engine.errors import ModelCorrupt

ROPE_TABLE = "rope_freqs.weight"
SINGLE_DIGITS = frozenset({"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"})
"""Pre-tokenizers that cut numbers into digits, and the rest as GPT-2 does."""

_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LLAMA3_CONTEXT = 8192


def value_of(reader: Any, key: str) -> Any:
    """The value of a key; None where the file has no such key."""
    field = reader.fields.get(key)
    return None if field is None else field.contents()


def require_whole(reader: Any, name: str) -> None:
    """Raises ModelCorrupt for one part of a model that was split into several files."""
    parts = int(value_of(reader, "split.count") or 1)
    if parts > 1:
        raise ModelCorrupt(
            f"{name} is one of the {parts} parts of a model: join them (llama-gguf-split --merge), or give "
            "a folder of safetensors."
        )


def complete_config(config: Any, reader: Any) -> None:
    """Adds to `config` the size of the heads, the rotary scaling and the biases.

    Raises ModelCorrupt for a rotary embedding that would be lost.
    """
    architecture = value_of(reader, "general.architecture")
    head_dim = value_of(reader, f"{architecture}.attention.key_length")
    turned = value_of(reader, f"{architecture}.rope.dimension_count")
    if head_dim is not None:
        config.head_dim = int(head_dim)
        if turned not in (None, head_dim):
            raise ModelCorrupt(
                f"the GGUF file turns {turned} of a head's {head_dim} numbers, which cannot be converted: "
                "give the model as a folder of safetensors."
            )
    names = {tensor.name for tensor in reader.tensors}
    if architecture != "qwen2":  # whose biases are not optional
        config.attention_bias = "blk.0.attn_output.bias" in names
        config.mlp_bias = "blk.0.ffn_down.bias" in names
    scaling = _stated_scaling(reader, architecture) or _scaling_of_table(config, reader, architecture)
    if scaling is not None:
        config.rope_parameters = {**config.rope_parameters, **scaling}


def _stated_scaling(reader: Any, architecture: str) -> dict[str, Any] | None:
    kind = value_of(reader, f"{architecture}.rope.scaling.type")
    if kind in (None, "none"):
        return None
    if kind not in ("linear", "yarn"):
        raise ModelCorrupt(
            f"the GGUF file scales its rotary embedding by {kind!r}, which cannot be converted: "
            "give the model as a folder of safetensors."
        )
    stated = {
        "factor": value_of(reader, f"{architecture}.rope.scaling.factor"),
        "original_max_position_embeddings": value_of(
            reader, f"{architecture}.rope.scaling.original_context_length"
        ),
    }
    wanted = stated if kind == "yarn" else {"factor": stated["factor"]}
    return {"rope_type": kind, **{name: value for name, value in wanted.items() if value is not None}}


def _scaling_of_table(config: Any, reader: Any, architecture: str) -> dict[str, Any] | None:
    """The rule of Llama 3 behind llama.cpp's table of it: the table is all that the file has."""
    table = next((tensor.data for tensor in reader.tensors if tensor.name == ROPE_TABLE), None)
    if table is None or np.allclose(table, 1.0):
        return None
    context = value_of(reader, f"{architecture}.rope.scaling.original_context_length")
    rule = {
        "rope_type": "llama3",
        "factor": float(np.max(table)),
        "original_max_position_embeddings": int(context or _LLAMA3_CONTEXT),
        **_LLAMA3,
    }
    if not np.allclose(table, _table_of(config, rule), rtol=1e-3):
        raise ModelCorrupt(
            f"the GGUF file's table of rotary frequencies ({ROPE_TABLE}) follows no known rule: "
            "give the model as a folder of safetensors."
        )
    return rule


def _table_of(config: Any, rule: dict[str, Any]) -> Any:
    """What frequencies are divided by, pair by pair, according to `rule`."""
    from copy import deepcopy

    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaled = deepcopy(config)
    scaled.rope_parameters = {**config.rope_parameters, **rule}
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](scaled, "cpu")
    pairs = len(frequencies)
    unscaled = config.rope_parameters["rope_theta"] ** (-np.arange(pairs) / pairs)
    return unscaled / frequencies.numpy()
