"""Drafting from the target's own hidden states: what EAGLE and MTP heads have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import torch

from specclient_engine.api import Draft
from specclient_engine.drafters.economy import PROBE, Economy
from specclient_engine.drafters.fallback import agreement
from specclient_engine.sampling import Row, Sampler

if TYPE_CHECKING:
    from specclient_engine.request_state import RequestState

_NOTHING = Draft((), (), ())
_READ_AT_ONCE = 512
Choose = Callable[[torch.Tensor], int | None]
"""Takes a row of logits over the target's vocabulary; the drafted token, or None: stop here."""


class HeadCache(Protocol):
    """A head's own cache for one request."""

    def draft(self, tokens: Sequence[int], hidden: torch.Tensor, choose: Choose) -> int:
        """Reads what was confirmed, then drafts.

        `tokens` is the whole confirmed text, `hidden` the target's states at the positions that the head
        has not kept yet, up to the last but one token. Drafted tokens go to `choose`, one by one, until
        it returns None. Returns the number of positions whose states need not be shown again.
        """
        ...


class Head(Protocol):
    """A drafting head. `states` are those it reads, as `RevealingRunner.reveal` counts them."""

    source: str
    states: Sequence[int]

    def open(self, room: int) -> HeadCache:
        """A cache for a text of at most `room` tokens."""
        ...


class HeadDrafter:
    """The head of an engine, and the proposers of the requests that it drafts for."""

    def __init__(self, head: Head, economy: Economy) -> None:
        self._head = head
        self._economy = economy
        self._open: dict[RequestState, HeadProposer] = {}

    def proposer_for(self, state: RequestState) -> HeadProposer:
        """A proposer for one request, with a cache of its own."""
        cache = self._head.open(state.room)
        proposer = HeadProposer(cache, self._economy, state.prompt, state.sampler.twin(state.prompt))
        self._open[state] = proposer
        return proposer

    def on_hidden(self, state: RequestState, start: int, rows: torch.Tensor) -> None:
        """The target's hidden states at the positions from `start` on, of which a tail may be rejected."""
        proposer = self._open.get(state)
        if proposer is not None:
            proposer.see(start, rows)

    def release(self, state: RequestState) -> None:
        """The request is over: its cache is free."""
        self._open.pop(state, None)


class HeadProposer:
    """Drafts for one request from the hidden states of the target's last pass."""

    def __init__(self, cache: HeadCache, economy: Economy, prompt: Sequence[int], sampler: Sampler) -> None:
        self._cache = cache
        self._economy = economy
        self._tokens = list(prompt)
        self._prompt_length = len(prompt)
        self._sampler = sampler
        self._first = 0
        self._hidden: torch.Tensor | None = None
        self._drafted: list[int] = []
        self._tenths: list[int] = []
        self._skipped = 0

    def see(self, start: int, rows: torch.Tensor) -> None:
        """Keeps the states that the head has not read; what lies behind `start` was rejected."""
        kept = self._hidden[: start - self._first] if self._hidden is not None else rows[:0]
        self._hidden = torch.cat([kept, rows])
        if len(self._hidden) > _READ_AT_ONCE:
            # A long prompt's states would take more memory than its keys and values.
            self._draft(lambda _: None)

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens; none when the head does not pay."""
        economy, context = self._economy, len(self._tokens)
        if self._hidden is None:
            return _NOTHING
        if not economy.pays(economy.overall, 0, context) and self._skipped < PROBE:
            self._skipped += 1
            return _NOTHING
        self._skipped = 0
        rates: list[float] = []
        chance = 1.0
        began = perf_counter()

        def choose(row: torch.Tensor) -> int | None:
            nonlocal chance
            logits: Row = row.float().cpu().numpy()
            token = self._sampler.choose(logits, context - self._prompt_length + len(rates))
            tenth = economy.tenth(logits, token)
            self._drafted.append(token)
            self._tenths.append(tenth)
            rates.append(economy.rate(tenth))
            chance *= rates[-1]
            more = len(rates) < limit and economy.pays(chance, len(rates), context)
            return token if more else None

        self._draft(choose)
        economy.timed((perf_counter() - began) / max(1, len(rates)))
        return Draft(tuple(self._drafted), (economy.source,) * len(rates), tuple(rates))

    def _draft(self, choose: Choose) -> None:
        """Shows the head what is confirmed, lets it draft, and forgets the states that it has read."""
        assert self._hidden is not None
        known = self._hidden[: len(self._tokens) - 1 - self._first]
        with torch.inference_mode():
            read = self._cache.draft(self._tokens, known, choose)
        self._hidden = self._hidden[read - self._first :].clone()
        self._first = read

    def commit(self, tokens: Sequence[int], _drafted: Draft, _accepted: int) -> None:
        """`tokens` were appended to the output."""
        self._economy.learn(self._tenths[: len(tokens)], agreement(self._drafted, tokens))
        self._tokens.extend(tokens)
        for token in tokens:
            self._sampler.append(token)
        self._drafted, self._tenths = [], []
