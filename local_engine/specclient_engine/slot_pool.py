"""Cache slots, with those of ended requests kept a while for prompts that begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from specclient_engine.errors import NotEnoughMemory
from specclient_engine.runner.base import ModelRunner, rows_alone, slot_room

KEPT = 4
"""Slots of ended requests that are kept at most."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of the runner, its room, and the tokens whose keys and values it holds from the start.

    `salt` is the `GenerationRequest.cache_salt` of the request that it was taken for.
    """

    index: int
    room: int
    tokens: Sequence[int] = field(default=(), repr=False)
    salt: str | None = field(default=None, repr=False)


class SlotPool:
    """Gives out the runner's slots.

    The next edit of a file begins with the same words and the same file: what was computed for them is
    still right, and the same to the last bit as if it were computed anew: of a runner whose rows are alone
    any number of tokens is reused, of another only whole chunks of `prefill_chunk`, which come from the same
    passes. What is kept is given up, oldest first, as soon as the memory is needed. It is reused under the
    salt it was computed under and no other, so that nobody is told by timing what others have asked.
    """

    def __init__(self, runner: ModelRunner, prefill_chunk: int) -> None:
        self._runner = runner
        self._chunk = prefill_chunk
        self._piece = 1 if rows_alone(runner) else prefill_chunk
        self._kept: list[Slot] = []

    def take(self, prompt: Sequence[int], room: int, salt: str | None) -> tuple[Slot, int]:
        """A slot for `room` positions, and how many of the prompt's tokens are in it already.

        Raises NotEnoughMemory when there is none even after everything kept was given up.
        """
        best, reused = None, 0
        for slot in self._kept:
            if slot.salt != salt or slot.room < room:
                continue
            common = self._common(slot.tokens, prompt)
            if common > reused and self._is_worth(slot, common):
                best, reused = slot, common
        if best is not None:
            self._kept.remove(best)
            return best, reused
        while True:
            try:
                return Slot(self._runner.allocate(room), slot_room(self._runner, room), salt=salt), 0
            except NotEnoughMemory:
                if not self._kept:
                    raise
                self._runner.release(self._kept.pop(0).index)

    def give_back(self, slot: Slot, cached: Sequence[int]) -> None:
        """The request of `slot` is over; `cached` are the prompt tokens that its passes computed."""
        whole = len(cached) // self._piece * self._piece
        if whole == 0 or not self._runner.can_roll_back:
            self._runner.release(slot.index)
            return
        self._kept.append(replace(slot, tokens=tuple(cached[:whole])))
        if len(self._kept) > KEPT:
            self._runner.release(self._kept.pop(0).index)

    def close(self) -> None:
        """Releases everything kept."""
        for slot in self._kept:
            self._runner.release(slot.index)
        self._kept.clear()

    def _is_worth(self, slot: Slot, common: int) -> bool:
        """A chat template's first words are in every prompt: no reason to give up a long one's."""
        return common >= self._chunk or 2 * common >= len(slot.tokens)

    def _common(self, tokens: Sequence[int], prompt: Sequence[int]) -> int:
        """Tokens in common from the start, in whole pieces; the prompt's last is never among them."""
        most = min(len(tokens), len(prompt) - 1)
        pairs = zip(tokens[:most], prompt[:most], strict=True)
        common = next((at for at, (ours, its) in enumerate(pairs) if ours != its), most)
        return common // self._piece * self._piece
