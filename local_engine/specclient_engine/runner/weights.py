"""Reads a Hugging Face folder (config.json, *.safetensors) of the Llama-shaped families.

The fused runners compute one block: RMSNorm, rotary attention with grouped heads, SwiGLU. `read_shape`
says whether a folder holds a model of exactly that kind; anything else is left to the plain runner.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import safe_open

from specclient_engine.errors import ModelCorrupt
from specclient_engine.runner.config import SCALINGS, Config, frequencies, read_config
from specclient_engine.tokenizer import read_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes of a Llama-shaped model.

    `inv_freq` is float32 `[head_dim / 2]`; `rope_scale` multiplies the rotary sine and cosine.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    eps: float
    tied: bool
    inv_freq: torch.Tensor
    rope_scale: float

    @property
    def group(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def qkv_width(self) -> int:
        """Outputs of the joint query, key and value projection."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def linear_parameters(self) -> int:
        """Weights of all matrix products, the output head included."""
        attention = self.hidden * (self.qkv_width + self.heads * self.head_dim)
        return self.layers * (attention + 3 * self.hidden * self.intermediate) + self.vocab * self.hidden

    def weight_bytes(self, bytes_per_weight: int, embedding: torch.dtype) -> int:
        """What the weights occupy once loaded: the products' own, and the embeddings as they are stored.

        Tied embeddings are held twice: as rows to look up, and laid out for the head's product.
        """
        looked_up = 2 if embedding.itemsize == 2 else 4
        return self.linear_parameters * bytes_per_weight + self.vocab * self.hidden * looked_up

    def packed_bytes(self, bytes_per_weight: int) -> int:
        """What the weights occupy in the compiled kernels, which look tied embeddings up in the head."""
        matrices = self.linear_parameters + (0 if self.tied else self.vocab * self.hidden)
        return matrices * bytes_per_weight

    def rope_tables(self, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosine and sine, float32 `[positions, head_dim / 2]` each."""
        angles = torch.outer(torch.arange(positions, dtype=torch.float32), self.inv_freq)
        return angles.cos() * self.rope_scale, angles.sin() * self.rope_scale


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One block in the order it is computed; query, key and value are one product, gate and up another."""

    input_norm: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    qkv_bias: torch.Tensor | None
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    output: torch.Tensor
    output_bias: torch.Tensor | None
    post_norm: torch.Tensor
    gate: torch.Tensor
    up: torch.Tensor
    gate_up_bias: torch.Tensor | None
    down: torch.Tensor
    down_bias: torch.Tensor | None

    @property
    def qkv(self) -> torch.Tensor:
        """Query, key and value below one another, copied."""
        return torch.cat([self.query, self.key, self.value])

    @property
    def gate_up(self) -> torch.Tensor:
        """Gate and up below one another, copied."""
        return torch.cat([self.gate, self.up])


def read_shape(folder: Path) -> ModelShape | str:
    """The model's sizes, or in half a sentence why the fused runners cannot compute it."""
    config = read_config(folder)
    if config is None:
        return f"its architecture is {read_json(folder / 'config.json').get('model_type', 'not named')}"
    refusal = _refusal(config)
    if refusal is not None:
        return refusal
    inv_freq, rope_scale = frequencies(config)
    if config.head_dim % 2 or len(inv_freq) != config.head_dim // 2:
        return "its rotary embedding does not cover the whole head"
    return ModelShape(
        layers=config.size("num_hidden_layers"),
        hidden=config.size("hidden_size"),
        intermediate=config.size("intermediate_size"),
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        vocab=config.size("vocab_size"),
        max_positions=config.size("max_position_embeddings"),
        eps=config.number("rms_norm_eps"),
        tied=bool(config.values["tie_word_embeddings"]),
        inv_freq=inv_freq,
        rope_scale=rope_scale,
    )


def _refusal(config: Config) -> str | None:
    values, rope = config.values, config.rope
    if values.get("quantization_config") is not None:
        return "its weights are stored quantised"
    if values["hidden_act"] != "silu":
        return f"its activation is {values['hidden_act']}"
    if set(values.get("layer_types") or ()) - {"full_attention"}:
        return "some of its layers do not attend to the whole context"
    if any(isinstance(value, Mapping) for value in rope.values()):
        return "its rotary embedding is described kind by kind of layer"
    if rope["rope_type"] not in SCALINGS:
        return f"its rotary scaling is {rope['rope_type']}"
    window = values.get("sliding_window")
    if window is not None and values.get("use_sliding_window", True):
        return f"it attends to a window of {window} tokens"
    return None


class WeightFiles:
    """The tensors of a folder by name, mapped from disk, not read until they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self._files: dict[str, Any] = {}
        for path in _shards(folder):
            opened = self._stack.enter_context(safe_open(path, framework="pt"))
            self._files.update(dict.fromkeys(opened.keys(), opened))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def has(self, name: str) -> bool:
        """Whether the folder holds a tensor of this name."""
        return name in self._files

    def get(self, name: str) -> torch.Tensor:
        """The tensor as stored; KeyError when it is not there."""
        tensor: torch.Tensor = self._files[name].get_tensor(name)
        return tensor

    def joined(self, names: Sequence[str]) -> torch.Tensor | None:
        """The tensors below one another, None when none is there; KeyError when only some are."""
        if not any(self.has(name) for name in names):
            return None
        return torch.cat([self.get(name) for name in names])

    @property
    def embedding(self) -> torch.Tensor:
        """Token embeddings, `[vocab, hidden]`."""
        return self.get("model.embed_tokens.weight")

    @property
    def final_norm(self) -> torch.Tensor:
        """Scale of the RMSNorm before the head."""
        return self.get("model.norm.weight")

    def head(self, shape: ModelShape) -> torch.Tensor:
        """The output head, `[vocab, hidden]`: the embeddings when the two are tied."""
        name = "model.embed_tokens.weight" if shape.tied else "lm_head.weight"
        return _sized(self.get(name), (shape.vocab, shape.hidden), name)

    def layers(self, shape: ModelShape) -> Iterator[LayerWeights]:
        """The blocks in order, one at a time, so that no more than one is held unpacked."""
        for index in range(shape.layers):
            prefix = f"model.layers.{index}."
            layer = self._layer(prefix)
            _check_layer(layer, shape, prefix)
            yield layer

    def _layer(self, prefix: str) -> LayerWeights:
        attention, mlp = prefix + "self_attn.", prefix + "mlp."
        optional: Callable[[str], torch.Tensor | None] = lambda name: self.joined([name])  # noqa: E731
        return LayerWeights(
            input_norm=self.get(prefix + "input_layernorm.weight"),
            query=self.get(attention + "q_proj.weight"),
            key=self.get(attention + "k_proj.weight"),
            value=self.get(attention + "v_proj.weight"),
            qkv_bias=self.joined([f"{attention}{part}_proj.bias" for part in "qkv"]),
            q_norm=optional(attention + "q_norm.weight"),
            k_norm=optional(attention + "k_norm.weight"),
            output=self.get(attention + "o_proj.weight"),
            output_bias=optional(attention + "o_proj.bias"),
            post_norm=self.get(prefix + "post_attention_layernorm.weight"),
            gate=self.get(mlp + "gate_proj.weight"),
            up=self.get(mlp + "up_proj.weight"),
            gate_up_bias=self.joined([f"{mlp}{part}_proj.bias" for part in ("gate", "up")]),
            down=self.get(mlp + "down_proj.weight"),
            down_bias=optional(mlp + "down_proj.bias"),
        )


def _check_layer(layer: LayerWeights, shape: ModelShape, prefix: str) -> None:
    """Raises ModelCorrupt where the weights are not of the sizes that the configuration says.

    Compiled kernels would read beyond them, and others compute with the wrong ones.
    """
    hidden, inner, mixed = shape.hidden, shape.intermediate, shape.heads * shape.head_dim
    sizes: dict[str, tuple[int, ...]] = {
        "input_norm": (hidden,),
        "query": (mixed, hidden),
        "key": (shape.kv_heads * shape.head_dim, hidden),
        "value": (shape.kv_heads * shape.head_dim, hidden),
        "qkv_bias": (shape.qkv_width,),
        "q_norm": (shape.head_dim,),
        "k_norm": (shape.head_dim,),
        "output": (hidden, mixed),
        "output_bias": (hidden,),
        "post_norm": (hidden,),
        "gate": (inner, hidden),
        "up": (inner, hidden),
        "gate_up_bias": (2 * inner,),
        "down": (hidden, inner),
        "down_bias": (hidden,),
    }
    for name, size in sizes.items():
        tensor = getattr(layer, name)
        if tensor is not None:
            _sized(tensor, size, prefix + name)


def _sized(tensor: torch.Tensor, size: tuple[int, ...], name: str) -> torch.Tensor:
    if tuple(tensor.shape) != size:
        raise ModelCorrupt(
            f"the weights {name} are of shape {tuple(tensor.shape)}, and the configuration wants {size}: "
            "config.json and *.safetensors are not of one model; fetch both again"
        )
    return tensor


def _shards(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return [folder / name for name in sorted(names)]
    return [folder / "model.safetensors"]
