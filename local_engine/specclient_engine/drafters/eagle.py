"""An EAGLE-3 head (arXiv 2503.01840): one decoder layer over three of the target's hidden states.

Reads checkpoints as EAGLE publishes them (`midlayer.*`, `d2t` an offset) and as `speculators` wraps them
(`layers.0.*`, the layer's configuration one level down).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
)

from specclient_engine.drafters.hidden import Choose
from specclient_engine.errors import ModelCorrupt, UnsupportedRequest
from specclient_engine.runner.plain_cache import RollbackLayer

_REFUSED = ("norm_before_fc", "fc_norm", "norm_output")
"""Later variants of the head, which compute something else."""


class EagleHead(nn.Module):
    """The head's weights under their published names, and its pass.

    `target_layers` and `target_hidden` are the target's; `embeddings` is the target's own table, used
    when the checkpoint has none.
    """

    source = "eagle3"

    def __init__(
        self, config: Mapping[str, Any], *, target_layers: int, target_hidden: int, embeddings: nn.Embedding
    ) -> None:
        super().__init__()
        refused = [name for name in _REFUSED if config.get(name)]
        if refused:
            raise UnsupportedRequest(f"this EAGLE-3 head needs {', '.join(refused)}, which is not supported")
        layer = config.get("transformer_layer_config") or config
        self.config = LlamaConfig(**{name: value for name, value in layer.items() if name != "model_type"})
        hidden = self.config.hidden_size
        vocab = int(config.get("draft_vocab_size") or embeddings.num_embeddings)
        default = (2, target_layers // 2, target_layers - 3)
        self.states: Sequence[int] = tuple(config.get("eagle_aux_hidden_state_layer_ids") or default)
        self.fc = nn.Linear(len(self.states) * target_hidden, hidden, bias=False)
        self.midlayer = _EagleLayer(self.config, norm_first=bool(config.get("norm_before_residual")))
        self.norm = LlamaRMSNorm(hidden, eps=self.config.rms_norm_eps)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        self.embed_tokens = embeddings
        self.rotary = LlamaRotaryEmbedding(self.config)
        self.vocab_size = embeddings.num_embeddings
        self.d2t = nn.Buffer(torch.zeros(vocab, dtype=torch.long))

    @classmethod
    def load(cls, folder: Path, *, target_layers: int, embeddings: nn.Embedding) -> EagleHead:
        """Reads a head's folder. Raises ModelCorrupt when weights are missing or left over."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = _read_weights(folder)
        own = weights.get("embed_tokens.weight")
        if own is not None:
            embeddings = nn.Embedding.from_pretrained(own)  # type: ignore[no-untyped-call]
        hidden = embeddings.embedding_dim if own is None else int(config.get("target_hidden_size") or 0)
        head = cls(
            config,
            target_layers=target_layers,
            target_hidden=hidden or embeddings.embedding_dim,
            embeddings=embeddings,
        )
        missing, unexpected = head.load_state_dict(weights, strict=False)
        wrong = [name for name in missing if not name.startswith(("embed_tokens", "d2t"))] + unexpected
        if wrong:
            raise ModelCorrupt(f"{folder} is not a published EAGLE-3 head: see {wrong[0]}; fetch it again")
        return head.to(embeddings.weight.device, embeddings.weight.dtype).eval()

    def open(self, room: int) -> _EagleCache:
        """A cache for a text of at most `room` tokens."""
        return _EagleCache(self, room)

    def combine(self, states: torch.Tensor) -> torch.Tensor:
        """The target's three states of each position as one."""
        return self.fc(states.to(self.fc.weight.dtype))  # type: ignore[no-any-return]

    def step(self, tokens: torch.Tensor, states: torch.Tensor, cache: RollbackLayer) -> torch.Tensor:
        """One pass: each token beside the state of the position before it; the states behind it."""
        start = cache.length
        positions = torch.arange(start, start + len(tokens), device=states.device)[None]
        rotary = self.rotary(states[None], positions)
        return self.midlayer(self.embed_tokens(tokens)[None], states[None], rotary, cache)[0]  # type: ignore[no-any-return]

    def logits(self, state: torch.Tensor) -> torch.Tensor:
        """A row over the target's vocabulary; tokens that the head does not know cannot win."""
        known = self.lm_head(self.norm(state))
        row: torch.Tensor = known.new_full((self.vocab_size,), torch.finfo(known.dtype).min)
        row[torch.arange(len(known), device=known.device) + self.d2t] = known
        return row


class _EagleCache:
    """The keys and values of one request, and how many of them rest on confirmed states."""

    def __init__(self, head: EagleHead, room: int) -> None:
        self._head = head
        self._layer = RollbackLayer(room)
        self._confirmed = 0

    def draft(self, tokens: Sequence[int], hidden: torch.Tensor, choose: Choose) -> int:
        head, layer = self._head, self._layer
        layer.roll_back(self._confirmed)
        self._confirmed += len(hidden)
        following = tokens[self._confirmed - len(hidden) + 1 : self._confirmed + 1]
        state = head.step(_ids(following, hidden), head.combine(hidden), layer)[-1]
        # Behind the confirmed text the head feeds on its own states.
        while (token := choose(head.logits(state))) is not None:
            state = head.step(_ids([token], hidden), state[None], layer)[-1]
        return self._confirmed


class _EagleLayer(nn.Module):
    """A Llama decoder layer whose attention reads the token's embedding beside the state."""

    def __init__(self, config: LlamaConfig, *, norm_first: bool) -> None:
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.norm_first = norm_first
        self.self_attn = _EagleAttention(config)
        self.mlp = LlamaMLP(config)  # type: ignore[no-untyped-call]
        self.hidden_norm = LlamaRMSNorm(hidden, eps=eps)
        self.input_layernorm = LlamaRMSNorm(hidden, eps=eps)
        self.post_attention_layernorm = LlamaRMSNorm(hidden, eps=eps)

    def forward(
        self,
        embeddings: torch.Tensor,
        states: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        cache: RollbackLayer,
    ) -> torch.Tensor:
        normed = self.hidden_norm(states)
        residual = normed if self.norm_first else states
        inputs = torch.cat([self.input_layernorm(embeddings), normed], dim=-1)
        states = residual + self.self_attn(inputs, rotary, cache)
        return states + self.mlp(self.post_attention_layernorm(states))  # type: ignore[no-any-return]


class _EagleAttention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.dim = config.head_dim or config.hidden_size // config.num_attention_heads
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads or 1
        bias, width = bool(config.attention_bias), 2 * config.hidden_size
        self.q_proj = nn.Linear(width, heads * self.dim, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * self.dim, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * self.dim, bias=bias)
        self.o_proj = nn.Linear(heads * self.dim, config.hidden_size, bias=bias)

    def forward(
        self, inputs: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor], cache: RollbackLayer
    ) -> torch.Tensor:
        def split(projected: torch.Tensor) -> torch.Tensor:
            return projected.view(*projected.shape[:2], -1, self.dim).transpose(1, 2)

        query, key = apply_rotary_pos_emb(split(self.q_proj(inputs)), split(self.k_proj(inputs)), *rotary)
        keys, values = cache.update(key, split(self.v_proj(inputs)))
        rows, length = query.shape[2], keys.shape[2]
        visible = torch.ones(rows, length, dtype=torch.bool, device=inputs.device).tril(length - rows)
        out = nn.functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=visible, enable_gqa=True
        )
        return self.o_proj(out.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


def _ids(tokens: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(list(tokens), dtype=torch.long, device=like.device)


def _read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of the head, under EAGLE's names."""
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        weights |= load_file(path)
    legacy = folder / "pytorch_model.bin"
    if not weights and legacy.exists():
        weights = torch.load(legacy, weights_only=True, map_location="cpu")
    # t2d only says which of the target's tokens the head knows; d2t says the same.
    return {name.replace("layers.0.", "midlayer."): value for name, value in weights.items() if name != "t2d"}
