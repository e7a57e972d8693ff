"""The KV cache: one slot a sequence, written in place, rolled back by forgetting its length."""

from __future__ import annotations

import math
import mmap

import torch

from ..errors import NotEnoughMemory
from .memory import WORKSPACE_BYTES, available_bytes
from .weights import ModelShape

BLOCK = 512
"""Slots are sized in whole blocks of this many positions: what attention takes at once."""


class KVSlots:
    """Slots of `[layers, 2, kv_heads, positions, width]`, zeroed when allocated.

    `width` is the head's, or more where a runner lays it out in whole panels.

    Pages are only backed by memory once they are written, so a slot costs what it holds, but it is
    counted in full: what was admitted can always be finished.
    """

    def __init__(self, shape: ModelShape, width: int, dtype: torch.dtype, device: torch.device) -> None:
        self._shape = shape
        self._width = width
        self._dtype = dtype
        self._device = device
        self._slots: dict[int, torch.Tensor] = {}
        self._next = 0
        self.bytes_per_token = 2 * shape.layers * shape.kv_heads * width * dtype.itemsize
        self.token_capacity = 0

    def measure(self) -> None:
        """Sets the room of the cache to the memory that is free now, less the workspace (at first: none)."""
        free = max(0, available_bytes(self._device) - WORKSPACE_BYTES)
        self.token_capacity = free // self.bytes_per_token // BLOCK * BLOCK

    def __getitem__(self, slot: int) -> torch.Tensor:
        return self._slots[slot]

    @property
    def tokens_taken(self) -> int:
        """Positions that the live slots hold room for."""
        return sum(cache.shape[3] for cache in self._slots.values())

    def allocate(self, tokens: int) -> int:
        """A slot with room for `tokens` positions; NotEnoughMemory, with the figures, when there is none."""
        positions = max(1, -(-tokens // BLOCK)) * BLOCK
        left = self.token_capacity - self.tokens_taken
        if positions > left:
            need, have = (count * self.bytes_per_token / 2**20 for count in (positions, left))
            raise NotEnoughMemory(
                f"The KV cache of {tokens} tokens needs {need:.0f} MiB and {have:.0f} MiB are free "
                f"({self.tokens_taken} of {self.token_capacity} tokens taken): shorten the prompt, lower "
                "max_tokens, or wait for other requests to finish."
            )
        s = self._shape
        size = (s.layers, 2, s.kv_heads, positions, self._width)
        slot, self._next = self._next, self._next + 1
        self._slots[slot] = self._zeros(size)
        return slot

    def release(self, slot: int) -> None:
        """Drops the slot and its memory."""
        del self._slots[slot]

    def _zeros(self, size: tuple[int, ...]) -> torch.Tensor:
        if self._device.type != "cpu":
            return torch.zeros(size, dtype=self._dtype, device=self._device)
        # torch.zeros writes every page, a quarter of a second and more for a long context; the system's own
        # zeros cost nothing until they are overwritten. Private memory: shared pages are backed once read.
        memory = mmap.mmap(-1, math.prod(size) * self._dtype.itemsize, access=mmap.ACCESS_COPY)
        return torch.frombuffer(memory, dtype=self._dtype).view(size)
