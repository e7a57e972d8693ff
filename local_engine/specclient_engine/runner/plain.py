"""Any causal language model of transformers, one sequence a call: the slow path that is always right."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM
from transformers.cache_utils import Cache, DynamicCache

from specclient_engine.errors import ModelCorrupt, NotEnoughMemory, UnsupportedRequest
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.memory import WORKSPACE_BYTES, available_bytes, gibibytes
from specclient_engine.runner.plain_cache import (
    RollbackLayer,
    roll_back,
    rollback_cache,
    rollback_obstacle,
    rotary_switch,
)

_CACHE_ARGUMENTS = ("cache", "past_key_values", "cache_params")
_DEFAULT_CONTEXT = 2048


@dataclass(slots=True)
class _Slot:
    room: int
    cache: Cache | None
    tokens: list[int] = field(default_factory=list)


class PlainRunner:
    """Runs `model` (an `AutoModelForCausalLM`) through its own `forward`.

    A model whose cache is found not to reproduce its own full pass (recurrent models with a cache type
    of their own) is run without a cache: slower, and right.
    """

    def __init__(self, model: Any, *, max_context: int | None = None) -> None:
        self.model = model.eval()
        self._config = model.config.get_text_config(decoder=True)
        self.device: torch.device = next(model.parameters()).device
        self.vocab_size: int = _width_of_logits(model)
        self.max_context = _context(self._config, max_context)
        self._stateful = bool(getattr(model, "_is_stateful", False))
        parameters = inspect.signature(model.forward).parameters
        self._cache_argument = next((name for name in _CACHE_ARGUMENTS if name in parameters), None)
        self._keeps_logits = "logits_to_keep" in parameters
        self._slots: dict[int, _Slot] = {}
        self._states: tuple[int, ...] = ()
        self._seen: list[torch.Tensor] = []
        self.revealed = torch.empty(0)
        self._switch = rotary_switch(self._config)
        self.rollback_reason = rollback_obstacle(self._config, self.max_context, stateful=self._stateful)
        if self.rollback_reason is None and self._looks_ahead():
            self.rollback_reason = "the model's logits depend on the tokens behind them"
        self.can_roll_back = self.rollback_reason is None
        self._bytes_per_token = 0
        self._cached = self._cache_works()
        self.token_capacity = self._capacity()

    @classmethod
    def load(
        cls, folder: Path, *, dtype: torch.dtype, device: torch.device, max_context: int | None = None
    ) -> PlainRunner:
        """Reads a folder of transformers' layout from the disk; never from the network."""
        try:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise ModelCorrupt(
                f"transformers cannot load the model in {folder} ({error}); check that the folder is complete"
            ) from error
        model.to(device)  # type: ignore[arg-type]
        return cls(model, max_context=max_context)

    def allocate(self, tokens: int) -> int:
        taken = sum(slot.room for slot in self._slots.values())
        if taken + tokens > self.token_capacity:
            size = self._bytes_per_token
            raise NotEnoughMemory(
                f"a cache of {tokens} tokens ({gibibytes(tokens * size)}) does not fit: {taken} of "
                f"{self.token_capacity} tokens ({gibibytes(self.token_capacity * size)}) are taken"
            )
        index = next(index for index in range(len(self._slots) + 1) if index not in self._slots)
        self._slots[index] = _Slot(room=tokens, cache=self._new_cache(tokens) if self._cached else None)
        return index

    def release(self, slot: int) -> None:
        del self._slots[slot]

    @torch.inference_mode()
    def forward(self, chunks: Sequence[Chunk]) -> torch.Tensor:
        self._seen = []
        logits = torch.cat([self._run(chunk) for chunk in chunks])
        if self._states:
            self.revealed = torch.cat(self._seen)
        return logits

    def reveal(self, states: Sequence[int]) -> None:
        self._states = tuple(states)

    def _run(self, chunk: Chunk) -> torch.Tensor:
        slot = self._slots[chunk.slot]
        if chunk.start != len(slot.tokens):
            if not self.can_roll_back:
                raise UnsupportedRequest(f"the cache cannot go back: {self.rollback_reason}")
            del slot.tokens[chunk.start :]
        slot.tokens.extend(chunk.tokens)
        if 0 < chunk.start <= self._switch < len(slot.tokens) and slot.cache is not None:
            # What is cached was turned by the rotary frequencies of short texts.
            slot.cache = self._new_cache(slot.room)
            return self._logits(slot.tokens, chunk.rows_wanted, cache=slot.cache)
        if slot.cache is None:
            return self._logits(slot.tokens, chunk.rows_wanted, cache=None)
        if not self._stateful or chunk.start == 0:
            roll_back(slot.cache, chunk.start)
            return self._logits(chunk.tokens, chunk.rows_wanted, cache=slot.cache)
        # A recurrent state takes several tokens only from its very beginning.
        rows = [
            self._logits([token], int(index >= chunk.logits_from), cache=slot.cache)
            for index, token in enumerate(chunk.tokens)
        ]
        return torch.cat(rows)

    def _logits(self, tokens: Sequence[int], rows: int, *, cache: Cache | None) -> torch.Tensor:
        """The last `rows` rows of logits of one pass over `tokens` behind what `cache` holds."""
        arguments: dict[str, Any] = {"input_ids": torch.tensor([list(tokens)], device=self.device)}
        if cache is not None and self._cache_argument is not None:
            arguments |= {self._cache_argument: cache, "use_cache": True}
        else:
            arguments["use_cache"] = False
        if self._keeps_logits:
            # 0 would mean all of them.
            arguments["logits_to_keep"] = max(rows, 1)
        if self._states:
            arguments["output_hidden_states"] = True
        output = self.model(**arguments)
        if self._states:
            self._seen.append(torch.cat([output.hidden_states[state][0] for state in self._states], dim=-1))
        logits: torch.Tensor = output.logits[0]
        return logits[logits.shape[0] - rows :].float()

    def _new_cache(self, room: int) -> Cache:
        return rollback_cache(self._config, room) if self.can_roll_back else DynamicCache(config=self._config)

    @torch.inference_mode()
    def _cache_works(self) -> bool:
        """Whether two passes over a cache give what one pass over all tokens gives; also weighs a token."""
        if self._cache_argument is None:
            return False
        probe = self._probe()
        cache = self._new_cache(len(probe))
        try:
            self._logits(probe[:-2], 1, cache=cache)
            self._logits(probe[-2:-1], 1, cache=cache)
            cached = self._logits(probe[-1:], 1, cache=cache)
            whole = self._logits(probe, 1, cache=None)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return False
        layers = [layer for layer in cache.layers if isinstance(layer, RollbackLayer)]
        self._bytes_per_token = sum(layer.nbytes() for layer in layers) // len(probe)
        return self._same(cached, whole)

    @torch.inference_mode()
    def _looks_ahead(self) -> bool:
        """Whether a row changes with the tokens behind it: a draft would change what it is held against."""
        probe = self._probe()
        rows = self._logits(probe, len(probe), cache=None)
        return not self._same(self._logits(probe[:-2], 1, cache=None)[-1], rows[-3])

    def _probe(self) -> list[int]:
        return [token % self.vocab_size for token in (5, 7, 11, 2, 3, 13, 1)]

    def _same(self, logits: torch.Tensor, others: torch.Tensor) -> bool:
        """Whether two ways to one result came to it, but for rounding."""
        slack = 0.1 if self.model.dtype != torch.float32 else 1e-3
        return float((logits - others).abs().max()) <= slack * float(others.abs().max())

    def _capacity(self) -> int:
        if self._bytes_per_token == 0:
            return 1 << 40
        return max(0, available_bytes(self.device) - WORKSPACE_BYTES) // self._bytes_per_token


def _context(config: Any, wanted: int | None) -> int:
    own = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if own is None:
        return wanted if wanted is not None else _DEFAULT_CONTEXT
    return int(own) if wanted is None else min(wanted, int(own))


def _width_of_logits(model: Any) -> int:
    head = model.get_output_embeddings()
    return int(head.weight.shape[0]) if head is not None else int(model.config.vocab_size)
