"""Caches for the plain path: one that rolls back by length, and the model's own where that cannot be."""

from __future__ import annotations

import sys
from typing import Any

import torch
from transformers import PretrainedConfig
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

_CACHES_NOTHING = ("DummyLayer",)
"""Layers without a cache, by name: older releases of transformers do not have the class."""


class RollbackLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer's keys and values in a buffer of fixed room; going back is a change of `length`.

    The stock layer concatenates all keys and values at every step, which is quadratic in the length.
    """

    def __init__(self, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.room = room
        self.length = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes `[1, heads, n, dim]` behind the cached positions and returns all of them."""
        if not self.is_initialized:
            self.device, self.dtype = key_states.device, key_states.dtype
            self._key_buffer = _room_like(key_states, self.room)
            self._value_buffer = _room_like(value_states, self.room)
            self.is_initialized = True
        end = self.length + key_states.shape[-2]
        self._key_buffer[:, :, self.length : end] = key_states
        self._value_buffer[:, :, self.length : end] = value_states
        self.roll_back(end)
        return self._key_buffer[:, :, :end], self._value_buffer[:, :, :end]

    def roll_back(self, length: int) -> None:
        """Makes the first `length` positions the whole cache."""
        self.length = length
        if self.is_initialized:
            self.keys = self._key_buffer[:, :, :length]
            self.values = self._value_buffer[:, :, :length]

    def get_seq_length(self) -> int:
        return self.length

    def nbytes(self) -> int:
        """Bytes that the buffers occupy."""
        if not self.is_initialized:
            return 0
        return int(self._key_buffer.nbytes + self._value_buffer.nbytes)


def rollback_obstacle(config: PretrainedConfig, max_context: int, *, stateful: bool) -> str | None:
    """Why a cache of this architecture cannot go back to a smaller length; None: it can.

    A window that the context never outgrows is no obstacle: nothing ever leaves it.
    """
    state = "the model carries a recurrent or convolution state that cannot be rolled back"
    if stateful:
        return state
    if (switch := rotary_switch(config)) < max_context:
        return (
            f"the model's rotary embedding is another for texts beyond {switch} tokens (loaded with "
            "that max_context it can)"
        )
    for layer in DynamicCache(config=config).layers:
        window = getattr(layer, "sliding_window", None)
        if window is not None:
            if int(window) < max_context:
                return f"the model drops tokens behind a sliding window of {int(window)}"
        elif hasattr(layer, "conv_states"):
            return state
        elif type(layer) is not DynamicLayer and type(layer).__name__ not in _CACHES_NOTHING:
            return f"the model's cache is of a kind that is not known to roll back ({type(layer).__name__})"
    return None


def rotary_switch(config: PretrainedConfig) -> int:
    """The length beyond which all of a text is turned by other frequencies (LongRoPE, arXiv 2402.13753)."""
    rope = getattr(config, "rope_parameters", None) or {}
    lengths = [
        int(part["original_max_position_embeddings"])
        for part in (rope, *rope.values())
        if isinstance(part, dict) and part.get("rope_type") == "longrope"
    ]
    return min(lengths, default=sys.maxsize)


def rollback_cache(config: PretrainedConfig, room: int) -> Cache:
    """A cache of `room` positions for a model without obstacle; layers that cache nothing stay so."""
    cache = DynamicCache(config=config)
    layers = cache.layers
    cache.layers = [RollbackLayer(room) if isinstance(layer, DynamicLayer) else layer for layer in layers]
    return cache


def roll_back(cache: Cache, length: int) -> None:
    """Makes the first `length` positions the whole cache."""
    for layer in cache.layers:
        if isinstance(layer, RollbackLayer):
            layer.roll_back(length)


def _room_like(states: torch.Tensor, room: int) -> torch.Tensor:
    batch, heads, _, dim = states.shape
    return torch.empty((batch, heads, room, dim), dtype=states.dtype, device=states.device)
