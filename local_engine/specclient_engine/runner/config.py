"""What config.json says of a Llama-shaped model, read as transformers reads it.

transformers itself is not asked: it would stay in memory for as long as the model is served, with all that
it imports, and takes seconds to come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from specclient_engine.errors import ModelCorrupt
from specclient_engine.tokenizer import read_json

_LLAMA: dict[str, Any] = {
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
_MISTRAL = {
    **_LLAMA,
    "max_position_embeddings": 131_072,
    "num_key_value_heads": 8,
    "sliding_window": 4096,
}
_QWEN2 = {**_LLAMA, "max_position_embeddings": 32_768, "use_sliding_window": False, "sliding_window": 4096}
DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "qwen2": {**_QWEN2, "num_key_value_heads": 32},
    "qwen3": {**_QWEN2, "num_key_value_heads": 32, "head_dim": 128},
}
"""What a configuration of each family means where it leaves something out. Sizes are never left out."""

_BASE = 10_000.0
_OWN_CONTEXT = frozenset({"llama3", "yarn"})
"""Rotary scalings that start from the context of the training before them."""


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration of one of the families of `DEFAULTS`, with what it leaves out filled in."""

    values: Mapping[str, Any]

    def size(self, name: str) -> int:
        """A count that must be there. Raises ModelCorrupt where it is none."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            said = "is missing" if value is None else f"is {value!r}"
            raise ModelCorrupt(f"{name} {said} in config.json, and must be a count: fetch the model again")
        return value

    def number(self, name: str) -> float:
        """A number above 0 that must be there. Raises ModelCorrupt where it is none."""
        return _positive(self.values, name)

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.size("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        """Key and value heads: as many as query heads where nothing is said."""
        return self.size("num_key_value_heads") if self.values.get("num_key_value_heads") else self.heads

    @property
    def head_dim(self) -> int:
        """Width of a head: its share of the hidden size where nothing is said."""
        return (
            self.size("head_dim") if self.values.get("head_dim") else self.size("hidden_size") // self.heads
        )

    @property
    def rope(self) -> dict[str, Any]:
        """The parameters of the rotary embedding, under their present names.

        Older files have `rope_scaling` with a `type`, and the base beside it.
        """
        values = self.values
        found = values.get("rope_scaling") or values.get("rope_parameters") or {}
        rope = {name: value for name, value in found.items() if value is not None}
        rope.setdefault("rope_type", rope.get("type", "default"))
        for name, default in (("rope_theta", _BASE), ("partial_rotary_factor", 1.0)):
            rope.setdefault(name, values.get(name) or default)
        if rope["rope_type"] in _OWN_CONTEXT:
            own = values.get("original_max_position_embeddings")
            context = (
                own or rope.get("original_max_position_embeddings") or self.size("max_position_embeddings")
            )
            rope["original_max_position_embeddings"] = context
            if rope["rope_type"] == "yarn":
                rope.setdefault("factor", self.size("max_position_embeddings") / context)
        return rope


def read_config(folder: Path) -> Config | None:
    """The configuration in `folder`; None when it is of no family of `DEFAULTS`."""
    found = read_json(folder / "config.json")
    defaults = DEFAULTS.get(str(found.get("model_type")))
    return None if defaults is None else Config({**defaults, **found})


def frequencies(config: Config) -> tuple[torch.Tensor, float]:
    """The inverse frequencies of the rotary embedding, float32, and what sine and cosine are multiplied by.

    The published scalings, in the order of operations that transformers has them in
    (`modeling_rope_utils`): the numbers are the same to the last bit.
    """
    rope = config.rope
    width = int(config.head_dim * rope["partial_rotary_factor"])
    exponents = torch.arange(0, width, 2, dtype=torch.int64).float() / width
    return SCALINGS[rope["rope_type"]](rope, exponents, width)


Scaling = Callable[[Mapping[str, Any], torch.Tensor, int], tuple[torch.Tensor, float]]
"""(rotary parameters, exponents of the base, rotated width) to (inverse frequencies, scale)."""


def _unscaled(rope: Mapping[str, Any], exponents: torch.Tensor, _width: int) -> tuple[torch.Tensor, float]:
    return 1.0 / (_positive(rope, "rope_theta") ** exponents), 1.0


def _linear(rope: Mapping[str, Any], exponents: torch.Tensor, width: int) -> tuple[torch.Tensor, float]:
    unscaled, scale = _unscaled(rope, exponents, width)
    return unscaled / _positive(rope, "factor"), scale


def _llama3(rope: Mapping[str, Any], exponents: torch.Tensor, width: int) -> tuple[torch.Tensor, float]:
    """Llama 3.1: long waves are stretched by the factor, short ones are kept, between them it is blended."""
    unscaled, scale = _unscaled(rope, exponents, width)
    factor, context = _positive(rope, "factor"), _positive(rope, "original_max_position_embeddings")
    low, high = _positive(rope, "low_freq_factor"), _positive(rope, "high_freq_factor")
    wave = 2 * math.pi / unscaled
    stretched = torch.where(wave > context / low, unscaled / factor, unscaled)
    blend = (context / wave - low) / (high - low)
    blended = (1 - blend) * stretched / factor + blend * stretched
    between = (wave >= context / high) & (wave <= context / low)
    return torch.where(between, blended, stretched), scale


def _yarn(rope: Mapping[str, Any], exponents: torch.Tensor, width: int) -> tuple[torch.Tensor, float]:
    """YaRN (arXiv 2309.00071): a ramp over the pairs, from frequencies that are kept to interpolated ones."""
    base, factor = _positive(rope, "rope_theta"), _positive(rope, "factor")
    context = _positive(rope, "original_max_position_embeddings")

    def pair(turns: float) -> float:
        """The pair that makes so many turns within the context of the training."""
        return (width * math.log(context / (turns * 2 * math.pi))) / (2 * math.log(base))

    low, high = pair(rope.get("beta_fast") or 32), pair(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    span = 0.001 if low == high else high - low
    ramp = ((torch.arange(width // 2, dtype=torch.float32) - low) / span).clamp(0, 1)
    kept = 1 - ramp
    waves = base**exponents
    return 1.0 / (factor * waves) * (1 - kept) + 1.0 / waves * kept, _yarn_scale(rope, factor)


def _yarn_scale(rope: Mapping[str, Any], factor: float) -> float:
    def scale(by: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1.0

    if rope.get("attention_factor") is not None:
        return float(rope["attention_factor"])
    mscale, of_all = rope.get("mscale"), rope.get("mscale_all_dim")
    return scale(mscale) / scale(of_all) if mscale and of_all else scale(1)


SCALINGS: dict[str, Scaling] = {
    "default": _unscaled,
    # Within the model's own context it does not scale; beyond it no slot reaches.
    "dynamic": _unscaled,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}
"""Rotary scalings whose frequencies do not depend on the length of the text."""


def _positive(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        said = "is missing" if value is None else f"is {value!r}"
        raise ModelCorrupt(
            f"{name} {said} in config.json, and must be a number above 0: fetch the model again"
        )
    return value
