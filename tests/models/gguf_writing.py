"""Writes tiny GGUF files, as llama.cpp's converter lays them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer

NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
CONTROL, USER_DEFINED, UNKNOWN, BYTE, NORMAL = 3, 4, 2, 6, 1
SCALES = {Kind.Q2_K: (80, 82), Kind.Q3_K: (108,), Kind.Q4_K: (0, 2), Kind.Q5_K: (0, 2), Kind.Q6_K: (208,)}
"""Where the half-precision scales lie in a block, of kinds that the `gguf` package only reads."""

Writer = Any
Vocabulary = Callable[[Writer], None]


def byte_level_vocabulary(tokenizer: Tokenizer, pre: str = "smollm") -> Vocabulary:
    """A byte-level BPE, its special tokens as control tokens, and `<think>` as one that users defined."""
    raw = json.loads(tokenizer.to_str())
    tokens = [token for token, _ in sorted(raw["model"]["vocab"].items(), key=lambda pair: pair[1])]
    special = {token["content"] for token in raw["added_tokens"]}

    def write(writer: Writer) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list([*tokens, "<think>"])
        writer.add_token_types([*(CONTROL if t in special else NORMAL for t in tokens), USER_DEFINED])
        writer.add_token_merges([" ".join(merge) for merge in raw["model"]["merges"]])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(1)
        writer.add_add_bos_token(False)

    return write


def sentencepiece_vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """A BPE of pieces with scores, and a token for every byte."""
    vocab = json.loads(tokenizer.to_str())["model"]["vocab"]
    tokens = [token for token, _ in sorted(vocab.items(), key=lambda pair: pair[1])]

    def kind(at: int) -> int:
        return UNKNOWN if at == 0 else CONTROL if at < 3 else BYTE if at < 259 else NORMAL

    def write(writer: Writer) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_types([kind(at) for at in range(len(tokens))])
        writer.add_token_scores([-float(at) if at >= 259 else 0.0 for at in range(len(tokens))])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)

    return write


def write_gguf(
    path: Path,
    architecture: str,
    model: Any,
    vocabulary: Vocabulary,
    kind: Kind = Kind.F32,
    more: Callable[[Writer], None] = lambda _: None,
) -> Path:
    """`model` (of transformers) with its matrices in `kind`; norms and biases in float32."""
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    if architecture == "llama":
        writer.add_rope_dimension_count(head_dim)
    writer.add_vocab_size(config.vocab_size)
    vocabulary(writer)
    more(writer)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        if architecture == "llama" and name.rsplit(".", 2)[-2] in ("q_proj", "k_proj"):
            query = name.rsplit(".", 2)[-2] == "q_proj"
            values = interleaved(values, config.num_attention_heads if query else config.num_key_value_heads)
        add_tensor(writer, gguf_name(name), values, kind if values.ndim == 2 else Kind.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_name(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    part, what = rest.rsplit(".", 1)
    return f"blk.{layer}.{PARTS[part]}.{what}"


def interleaved(weight: Any, heads: int) -> Any:
    """Rotary pairs side by side, as llama.cpp stores them for its "llama" architecture."""
    paired = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return paired.swapaxes(1, 2).reshape(weight.shape)


def add_tensor(writer: Writer, name: str, values: Any, kind: Kind) -> None:
    values = np.ascontiguousarray(values)
    if kind == Kind.F32:
        writer.add_tensor(name, values)
    elif kind == Kind.F16:
        writer.add_tensor(name, values.astype(np.float16))
    elif kind in SCALES:
        writer.add_tensor(name, random_blocks(values.shape, kind), raw_dtype=kind)
    else:
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def random_blocks(shape: tuple[int, ...], kind: Kind) -> Any:
    """Blocks of a kind that can only be read: any bytes are numbers, as long as the scales are finite."""
    size, bytes_ = gguf.constants.GGML_QUANT_SIZES[kind]
    rows, columns = shape
    blocks = np.random.default_rng(rows).integers(0, 256, (rows * columns // size, bytes_), dtype=np.uint8)
    for at in SCALES[kind]:
        blocks[:, at : at + 2] = np.frombuffer(np.float16(0.01).tobytes(), dtype=np.uint8)
    return blocks.reshape(rows, -1)
