"""A separate, smaller model that drafts token by token (Leviathan et al., arXiv 2211.17192).

The draft is a guess, not a sample: it is compared with what the target draws by itself, so the draft
model can change speed and nothing else. When sampling, it draws with the target's own noise, which makes
the two agree more often than independent draws would (arXiv 2408.07978).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from specclient_engine.api import Draft
from specclient_engine.drafters.economy import PROBE, Economy
from specclient_engine.drafters.fallback import agreement
from specclient_engine.errors import ContextTooLong
from specclient_engine.runner.base import Chunk, ModelRunner
from specclient_engine.sampling import Row, Sampler

if TYPE_CHECKING:
    from specclient_engine.request_state import RequestState

SOURCE = "draft_model"
_NOTHING = Draft((), (), ())
_CATCH_UP = 512
"""Tokens that the draft model reads per target pass while it is behind: others must not wait for it."""


class DraftModel:
    """The draft model of an engine: its runner, and the caches of the requests it drafts for."""

    on_hidden = None

    def __init__(self, runner: ModelRunner, economy: Economy, vocab_size: int) -> None:
        self.runner = runner
        self.economy = economy
        self.vocab_size = min(vocab_size, runner.vocab_size)
        self._slots: dict[RequestState, int] = {}

    def proposer_for(self, state: RequestState) -> DraftModelProposer:
        """A proposer with a cache of its own. Raises what `allocate` raises, and ContextTooLong."""
        if state.room > self.runner.max_context:
            raise ContextTooLong(
                f"the request needs {state.room} positions and the draft model's context is "
                f"{self.runner.max_context}: it runs without the draft model"
            )
        slot = self._slots[state] = self.runner.allocate(state.room)
        return DraftModelProposer(self, slot, state.prompt, state.sampler.twin(state.prompt))

    def release(self, state: RequestState) -> None:
        """The request is over: its cache is free."""
        slot = self._slots.pop(state, None)
        if slot is not None:
            self.runner.release(slot)


class DraftModelProposer:
    """Drafts for one request, as long as the next token is likely enough to be worth its cost."""

    def __init__(self, model: DraftModel, slot: int, prompt: Sequence[int], sampler: Sampler) -> None:
        self._model = model
        self._slot = slot
        self._tokens = list(prompt)
        self._prompt_length = len(prompt)
        self._sampler = sampler
        self._cached = 0
        self._drafted: list[int] = []
        self._tenths: list[int] = []
        self._skipped = 0

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens; none while the model is still reading, or does not pay."""
        if len(self._tokens) - self._cached > _CATCH_UP:
            self._read(self._tokens[self._cached : self._cached + _CATCH_UP])
            return _NOTHING
        economy = self._model.economy
        if not economy.pays(economy.overall, 0, len(self._tokens)) and self._skipped < PROBE:
            self._skipped += 1
            return _NOTHING
        self._skipped = 0
        return self._draft(limit)

    def commit(self, tokens: Sequence[int], _drafted: Draft, _accepted: int) -> None:
        """`tokens` were appended to the output: what agrees with them stays in the cache."""
        agreed = agreement(self._drafted, tokens)
        self._model.economy.learn(self._tenths[: len(tokens)], agreed)
        self._cached = min(self._cached, len(self._tokens) + agreed)
        self._tokens.extend(tokens)
        for token in tokens:
            self._sampler.append(token)
        self._drafted, self._tenths = [], []

    def _draft(self, limit: int) -> Draft:
        economy = self._model.economy
        rates: list[float] = []
        position = len(self._tokens) - self._prompt_length
        chance = 1.0
        inputs: Sequence[int] = self._tokens[self._cached :]
        while len(rates) < limit and (not rates or economy.pays(chance, len(rates), len(self._tokens))):
            row = self._read(inputs)
            token = self._sampler.choose(row, position + len(rates))
            self._drafted.append(token)
            self._tenths.append(economy.tenth(row, token))
            rates.append(economy.rate(self._tenths[-1]))
            chance *= rates[-1]
            inputs = [token]
        return Draft(tuple(self._drafted), (SOURCE,) * len(rates), tuple(rates))

    def _read(self, tokens: Sequence[int]) -> Row:
        """Feeds tokens to the draft model; the row behind the last of them."""
        began = perf_counter()
        chunk = Chunk(self._slot, self._cached, tokens, len(tokens) - 1)
        row = self._model.runner.forward([chunk])[0, : self._model.vocab_size].cpu().numpy()
        if len(tokens) == 1:
            self._model.economy.timed(perf_counter() - began)
        self._cached += len(tokens)
        return row
