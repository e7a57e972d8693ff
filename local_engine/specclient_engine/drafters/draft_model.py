"""A separate, smaller model that drafts token by token (Leviathan et al., arXiv 2211.17192).

The draft is a guess, not a sample: it is compared with what the target draws by itself, so the draft
model can change speed and nothing else. When sampling, it draws with the target's own noise, which makes
the two agree more often than independent draws would (arXiv 2408.07978).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from specclient_engine.api import CostModel, Draft
from specclient_engine.drafters.fallback import agreement
from specclient_engine.errors import ContextTooLong
from specclient_engine.proposers import AcceptanceTable
from specclient_engine.runner.base import Chunk, ModelRunner
from specclient_engine.sampling import Row, Sampler, soften

if TYPE_CHECKING:
    from specclient_engine.request_state import RequestState

SOURCE = "draft_model"
_NOTHING = Draft((), (), ())
_CATCH_UP = 512
"""Tokens that the draft model reads per target pass while it is behind: others must not wait for it."""
_PROBE = 32
"""After so many steps without a draft one is made anyway, to learn whether it would pay again."""
_PRIORS: dict[tuple[str | int, ...], float] = {(SOURCE,): 0.6}
_PRIORS |= {(SOURCE, tenth): (tenth + 0.5) / 10 for tenth in range(10)}


class DraftModel:
    """The draft model of an engine: its runner, what a token of it costs, how often it was right.

    `target` is the cost of the target's passes, which a draft has to earn.
    """

    def __init__(self, runner: ModelRunner, target: CostModel, vocab_size: int) -> None:
        self.runner = runner
        self.target = target
        self.vocab_size = min(vocab_size, runner.vocab_size)
        self.table = AcceptanceTable(_PRIORS)
        self.seconds = 0.0
        self._open: dict[RequestState, DraftModelProposer] = {}

    def proposer_for(self, state: RequestState) -> DraftModelProposer:
        """A proposer with a cache of its own. Raises what `allocate` raises, and ContextTooLong."""
        if state.room > self.runner.max_context:
            raise ContextTooLong(
                f"the request needs {state.room} positions and the draft model's context is "
                f"{self.runner.max_context}: it runs without the draft model"
            )
        slot = self.runner.allocate(state.room)
        proposer = DraftModelProposer(self, slot, state.prompt, state.sampler.twin(state.prompt))
        self._open[state] = proposer
        return proposer

    def release(self, state: RequestState) -> None:
        """The request is over: its cache is free."""
        proposer = self._open.pop(state, None)
        if proposer is not None:
            self.runner.release(proposer.slot)

    def timed(self, seconds: float) -> None:
        """One pass over one token took so long."""
        self.seconds = seconds if self.seconds == 0.0 else 0.9 * self.seconds + 0.1 * seconds


class DraftModelProposer:
    """Drafts for one request, as long as the next token is likely enough to be worth its cost."""

    def __init__(self, model: DraftModel, slot: int, prompt: Sequence[int], sampler: Sampler) -> None:
        self.slot = slot
        self._model = model
        self._tokens = list(prompt)
        self._prompt_length = len(prompt)
        self._sampler = sampler
        self._cached = 0
        self._drafted: list[int] = []
        self._sureness: list[int] = []
        self._skipped = 0

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens; none while the model is still reading, or does not pay."""
        if len(self._tokens) - self._cached > _CATCH_UP:
            self._read(self._tokens[self._cached : self._cached + _CATCH_UP])
            return _NOTHING
        if not self._pays(self._model.table.rate((SOURCE,)), 0) and self._skipped < _PROBE:
            self._skipped += 1
            return _NOTHING
        self._skipped = 0
        return self._draft(limit)

    def commit(self, tokens: Sequence[int], _drafted: Draft, _accepted: int) -> None:
        """`tokens` were appended to the output: what agrees with them stays in the cache."""
        agreed = agreement(self._drafted, tokens)
        table = self._model.table
        for index in range(min(agreed + 1, len(self._drafted), len(tokens))):
            hit = index < agreed
            table.update((SOURCE, self._sureness[index]), hit)
            table.update((SOURCE,), hit)
        # The last drafted token was never an input.
        self._cached = min(self._cached, len(self._tokens) + min(agreed, max(0, len(self._drafted) - 1)))
        self._tokens.extend(tokens)
        for token in tokens:
            self._sampler.append(token)
        self._drafted, self._sureness = [], []

    def _draft(self, limit: int) -> Draft:
        rates: list[float] = []
        position = len(self._tokens) - self._prompt_length
        survival = 1.0
        inputs: Sequence[int] = self._tokens[self._cached :]
        while len(self._drafted) < limit and (not rates or self._pays(survival, len(rates))):
            row = self._read(inputs)
            token = self._sampler.choose(row, position + len(self._drafted))
            weights, _ = soften(row, 1.0)
            tenth = min(9, int(10 * float(weights[token]) / float(weights.sum(dtype=np.float64))))
            rates.append(self._model.table.rate((SOURCE, tenth)))
            survival *= rates[-1]
            self._drafted.append(token)
            self._sureness.append(tenth)
            inputs = [token]
        return Draft(tuple(self._drafted), (SOURCE,) * len(rates), tuple(rates))

    def _read(self, tokens: Sequence[int]) -> Row:
        """Feeds tokens to the draft model; the row behind the last of them."""
        began = perf_counter()
        chunk = Chunk(self.slot, self._cached, tokens, len(tokens) - 1)
        row = self._model.runner.forward([chunk])[0, : self._model.vocab_size].cpu().numpy()
        if len(tokens) == 1:
            self._model.timed(perf_counter() - began)
        self._cached += len(tokens)
        return row

    def _pays(self, survival: float, drafted: int) -> bool:
        """Whether one more token, reached with probability `survival`, saves more than it costs."""
        cost, context = self._model.target, len(self._tokens)
        row = cost.seconds(drafted + 2, context) - cost.seconds(drafted + 1, context)
        return survival * cost.seconds(1, context) > self._model.seconds + row
