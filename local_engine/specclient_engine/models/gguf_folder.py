"""Turn a GGUF file into a folder of dense bf16 safetensors, once.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The blocks are expanded by the
`gguf` package; configuration and tokenizer are read by transformers. For the Llama-shaped families the
tensors are renamed here, one at a time, so that the work shows its progress and never holds the model
twice; any other architecture goes through transformers' own loader.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import EngineError, ModelCorrupt
from specclient_engine.models.cache import require_space
from specclient_engine.models.gguf_facts import (
    ROPE_TABLE,
    SINGLE_DIGITS,
    complete_config,
    require_whole,
    value_of,
)

if TYPE_CHECKING:
    import torch

_SHARD_BYTES = 2_000_000_000

_DIRECT = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_BLOCK_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_RENAMED_ARCHITECTURES = {"llama", "qwen2", "qwen3"}

# Tokens that end a turn, by the names their publishers gave them: a GGUF names one end token, and
# chat models use a second one.
_END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>")


def convert_gguf(file: Path, folder: Path, progress: ProgressCallback | None = None) -> None:
    """Write `folder` (config, tokenizer, generation config, weights) from `file`.

    Raises ModelCorrupt when the file is not a readable GGUF or makes no model, NotEnoughDisk before writing.
    """
    import gguf

    try:
        reader = gguf.GGUFReader(file)
        architecture = str(reader.fields["general.architecture"].contents())
    except (ValueError, KeyError, OSError, IndexError) as error:
        raise ModelCorrupt(
            f"{file} is not a readable GGUF file ({type(error).__name__}): fetch it again, "
            "or give a folder of safetensors."
        ) from error
    require_whole(reader, file.name)
    with _told_as_corrupt(file):
        _convert(file, folder, reader, architecture, progress)


@contextmanager
def _told_as_corrupt(file: Path) -> Iterator[None]:
    """What the libraries raise over metadata that make no model, which is of every kind."""
    try:
        yield
    except (EngineError, ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's
            raise
        if f"(os error {errno.ENOSPC})" in str(error):  # as safetensors tells it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        said = str(error).strip().partition("\n")[0].rstrip(".")
        raise ModelCorrupt(
            f"{file} makes no model ({type(error).__name__}: {said}): fetch it again, "
            "or give a folder of safetensors."
        ) from error


def _convert(
    file: Path, folder: Path, reader: Any, architecture: str, progress: ProgressCallback | None
) -> None:
    parameters = sum(int(t.n_elements) for t in reader.tensors)
    require_space(folder.parent, 2 * parameters + 50_000_000, f"converting {file.name}")
    folder.mkdir(parents=True, exist_ok=True)
    if architecture in _RENAMED_ARCHITECTURES:
        untied = any(t.name == "output.weight" for t in reader.tensors)
        config = _save_config(file, folder, reader, tied=not untied)
        _save_tensors(_renamed(reader, config, architecture, progress), folder)
    else:
        _convert_through_transformers(file, folder, progress)
    _save_tokenizer(file, folder, reader)


def _save_config(file: Path, folder: Path, reader: Any, *, tied: bool) -> Any:
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    complete_config(config, reader)
    config.tie_word_embeddings = tied
    config.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]]
    config.dtype = "bfloat16"
    config.save_pretrained(folder)
    return config


def _save_tokenizer(file: Path, folder: Path, reader: Any) -> None:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    if value_of(reader, "tokenizer.ggml.pre") in SINGLE_DIGITS:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    tokenizer.save_pretrained(folder)
    size = len(reader.fields["tokenizer.ggml.tokens"].data)
    _drop_tokens_of_no_model(folder / "tokenizer.json", size)
    vocabulary = {token: number for token, number in tokenizer.get_vocab().items() if number < size}
    ends = {tokenizer.eos_token_id} | {vocabulary[t] for t in _END_TOKENS if t in vocabulary}
    generation = {"eos_token_id": sorted(i for i in ends if i is not None)}
    if tokenizer.bos_token_id is not None:
        generation["bos_token_id"] = tokenizer.bos_token_id
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def _drop_tokens_of_no_model(path: Path, size: int) -> None:
    """Tokenizer classes add tokens of their own, for which the model has no rows."""
    spec = json.loads(path.read_text(encoding="utf-8"))
    spec["added_tokens"] = [token for token in spec.get("added_tokens", ()) if token["id"] < size]
    path.write_text(json.dumps(spec, ensure_ascii=False), encoding="utf-8")


def _renamed(
    reader: Any, config: Any, architecture: str, progress: ProgressCallback | None
) -> Iterator[tuple[str, torch.Tensor]]:
    import gguf
    import torch

    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for number, tensor in enumerate(reader.tensors):
        if progress is not None:
            progress(Progress("convert", tensor.name, number, len(reader.tensors), "tensors"))
        if tensor.name == ROPE_TABLE:
            continue  # the configuration holds the rule it was made from
        # The reader hands out views of the file's memory map; dequantising copies.
        dense = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
        part = tensor.name.split(".")[2] if tensor.name.startswith("blk.") else ""
        if architecture == "llama" and part in heads:
            dense = _undo_interleave(dense, heads[part])
        yield _hf_name(tensor.name), dense.to(torch.bfloat16)


def _hf_name(name: str) -> str:
    if name in _DIRECT:
        return _DIRECT[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in _BLOCK_PARTS:
        raise ModelCorrupt(
            f"the GGUF file holds a tensor {name!r} that this architecture does not have: "
            "give the model as a folder of safetensors."
        )
    return f"model.layers.{match[1]}.{_BLOCK_PARTS[match[2]]}.{match[3]}"


def _undo_interleave(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """llama.cpp stores rotary pairs side by side; the safetensors layout keeps them half a head apart."""
    half = weight.shape[0] // heads // 2
    paired = weight.reshape(heads, half, 2, *weight.shape[1:])
    return paired.swapaxes(1, 2).reshape(weight.shape).contiguous()


def _save_tensors(tensors: Iterator[tuple[str, torch.Tensor]], folder: Path) -> None:
    """In shards, so that memory holds one shard and not the model."""
    from safetensors.torch import save_file

    shards: list[list[str]] = []
    pending: dict[str, torch.Tensor] = {}
    size = 0

    def flush() -> None:
        if pending:
            save_file(pending, folder / f"shard-{len(shards):05}.safetensors", metadata={"format": "pt"})
            shards.append(list(pending))
            pending.clear()

    for name, tensor in tensors:
        bytes_ = tensor.numel() * tensor.element_size()
        if size + bytes_ > _SHARD_BYTES:
            flush()
            size = 0
        pending[name] = tensor
        size += bytes_
    flush()
    if len(shards) == 1:
        (folder / "shard-00000.safetensors").replace(folder / "model.safetensors")
        return
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards):
        final = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        (folder / f"shard-{number:05}.safetensors").replace(folder / final)
        weight_map |= dict.fromkeys(names, final)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))


def _convert_through_transformers(file: Path, folder: Path, progress: ProgressCallback | None) -> None:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    if progress is not None:
        progress(Progress("convert", file.name, 0, None, "tensors"))
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(folder)
