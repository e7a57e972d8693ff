"""Who shares the next pass: admission, chunked prefill, drafts of different lengths in one batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import RLock
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol, cast

from specclient_engine.api import CostModel, Draft, Proposer, Step
from specclient_engine.errors import EngineClosed, EngineError, NotEnoughMemory
from specclient_engine.pass_logits import PassLogits
from specclient_engine.request_state import NO_DRAFT, Choose, ReadRow, RequestState, first_tokens
from specclient_engine.runner.base import Chunk, ModelRunner, RevealingRunner
from specclient_engine.slot_pool import SlotPool

if TYPE_CHECKING:
    import torch

MAX_RUNNING = 16
"""Requests in one batch at most."""


class LengthPolicy(Protocol):
    """Chooses how much of each draft is worth verifying; `DraftLengthPolicy` is one."""

    def choose(self, requests: Sequence[tuple[Draft, int]]) -> list[int]:
        """A length for each (draft, cached tokens), in order; 0 is legal."""
        ...


@dataclass(frozen=True, slots=True)
class SpeculationTools:
    """How drafts are made and measured.

    `proposer_for` makes a request's proposer, `release` frees what the proposer holds when the request is
    over. `on_hidden` is shown what a RevealingRunner reveals: the request, the first position, a row for
    each token of its chunk.
    """

    proposer_for: Callable[[RequestState], Proposer]
    lengths: LengthPolicy
    cost: CostModel
    release: Callable[[RequestState], None] = lambda _: None
    on_hidden: Callable[[RequestState, int, torch.Tensor], None] | None = None


class Scheduler:
    """Runs all requests of one runner, pass by pass, in one thread.

    A pass holds the next tokens of every request that is decoding, each with a draft of its own length,
    and at most `prefill_chunk` tokens of prompts, so that a long prompt delays the others by no more.
    Pieces end at multiples of `prefill_chunk` whatever else is running: a prompt is always computed in
    the same ones. Cancellation takes effect between passes and frees the cache at once.
    """

    def __init__(self, runner: ModelRunner, speculation: SpeculationTools, *, prefill_chunk: int) -> None:
        self._runner = runner
        self._speculation = speculation
        self._prefill_chunk = prefill_chunk
        self._slots = SlotPool(runner, prefill_chunk)
        self._inbox: SimpleQueue[RequestState | None] = SimpleQueue()
        self._waiting: deque[RequestState] = deque()
        self._running: list[RequestState] = []
        self._closing = False
        # Reentrant, because the garbage collector may close the engine in the midst of a submit.
        self._gate = RLock()

    def submit(self, request: RequestState) -> None:
        """Puts a request in the queue. Any thread. Raises EngineClosed behind `close`."""
        with self._gate:
            if self._closing:
                raise EngineClosed("the engine is closed; load it again")
            self._inbox.put(request)

    def close(self) -> None:
        """Asks `run` to end every request and return. Any thread, also while collecting garbage."""
        with self._gate:
            self._closing = True
            self._inbox.put(None)

    def run(self) -> None:
        """Works until `close`. A failing pass ends the requests that shared it, not the engine."""
        while True:
            self._take_in()
            if self._closing:
                break
            self._drop_cancelled()
            self._admit()
            if self._running:
                try:
                    self._step()
                except Exception as error:
                    self._fail(list(self._running), error)
        self._take_in()
        closed = EngineClosed("the engine was closed before the request ended; load it again and retry")
        for request in [*self._running, *self._waiting]:
            self._free(request)
            request.mailbox.fail(closed)
        self._slots.close()

    def _take_in(self) -> None:
        """Moves new requests to the waiting line; sleeps while there is nothing to do."""
        idle = not (self._running or self._waiting or self._closing)
        while True:
            try:
                arrival = self._inbox.get(block=idle)
            except Empty:
                return
            idle = False
            if arrival is not None:
                self._waiting.append(arrival)

    def _drop_cancelled(self) -> None:
        for request in [*self._running, *self._waiting]:
            if request.mailbox.cancelled:
                self._post(request, request.cancel())

    def _admit(self) -> None:
        """Gives cache slots to waiting requests, first come first served."""
        while self._waiting and len(self._running) < MAX_RUNNING:
            request = self._waiting[0]
            try:
                salt = request.request.cache_salt
                request.slot, reused = self._slots.take(request.prompt, request.room, salt)
            except Exception as error:
                if isinstance(error, NotEnoughMemory) and self._running:
                    return
                self._waiting.popleft()
                request.mailbox.fail(error)
                continue
            request.cached = request.account.cached_tokens = reused
            self._running.append(self._waiting.popleft())

    def _step(self) -> None:
        """One pass, and what follows from it."""
        decoding = [request for request in self._running if request.prefilled]
        began = perf_counter_ns()
        drafts = self._drafts(decoding)
        drafted = perf_counter_ns()
        chunks = [
            Chunk(slot_of(request), request.cached, request.pass_tokens(draft))
            for request, draft in zip(decoding, drafts, strict=True)
        ]
        prefilling = self._prefills()
        requests = [*decoding, *(request for request, _ in prefilling)]
        chunks += [chunk for _, chunk in prefilling]
        for request in decoding:
            request.account.drafting += drafted - began

        def verified(nanoseconds: int) -> None:
            for request in decoding:
                request.account.verifying += nanoseconds

        rows = PassLogits(self._runner, chunks, verified)
        self._show_hidden(requests, chunks)
        self._prefilled(prefilling)
        drafts += [NO_DRAFT] * len(prefilling)
        offset = 0
        for request, draft, chunk in zip(requests, drafts, chunks, strict=True):
            if chunk.rows_wanted:
                self._take(request, draft, *rows.readers(request, offset, chunk.rows_wanted))
            offset += chunk.rows_wanted
        # A pass that was not computed to the end says nothing of what its rows cost.
        if not prefilling and rows.whole:
            cached = sum(chunk.start for chunk in chunks) // len(chunks)
            count = sum(len(chunk.tokens) for chunk in chunks)
            self._speculation.cost.observe(count, cached, rows.spent * 1e-9)

    def _take(self, request: RequestState, draft: Draft, choose: Choose, row: ReadRow) -> None:
        """Verifies one request's draft. What fails here is this request's own, not the pass's."""
        try:
            step = request.take(draft, choose, row)
        except Exception as error:
            self._fail([request], error)
        else:
            self._post(request, step)

    def _show_hidden(self, requests: Sequence[RequestState], chunks: Sequence[Chunk]) -> None:
        if self._speculation.on_hidden is None:
            return
        offset = 0
        for request, chunk in zip(requests, chunks, strict=True):
            rows = cast("RevealingRunner", self._runner).revealed[offset : offset + len(chunk.tokens)]
            self._speculation.on_hidden(request, chunk.start, rows)
            offset += len(chunk.tokens)

    def _drafts(self, decoding: Sequence[RequestState]) -> list[Draft]:
        drafts = [request.propose(self._runner.vocab_size) for request in decoding]
        if not any(draft.tokens for draft in drafts):
            return drafts
        pairs = [(draft, request.cached) for draft, request in zip(drafts, decoding, strict=True)]
        lengths = self._speculation.lengths.choose(pairs)
        if len(decoding) > 1:
            for request, pair, length in zip(decoding, pairs, lengths, strict=True):
                alone = self._speculation.lengths.choose([pair])[0]
                request.account.held_back += max(0, alone - length)
        return [first_tokens(draft, length) for draft, length in zip(drafts, lengths, strict=True)]

    def _prefills(self) -> list[tuple[RequestState, Chunk]]:
        """The next pieces of prompts, in order of arrival, as many as fit beside the first."""
        pieces: list[tuple[RequestState, Chunk]] = []
        budget = self._prefill_chunk
        for request in self._running:
            if request.prefilled:
                continue
            chunk = self._prefill(request)
            if pieces and len(chunk.tokens) > budget:
                break
            if request.account.scheduled is None:
                request.account.scheduled = perf_counter_ns()
                self._arm(request)
            pieces.append((request, chunk))
            budget -= len(chunk.tokens)
        return pieces

    def _prefilled(self, pieces: Sequence[tuple[RequestState, Chunk]]) -> None:
        """Notes what a pass computed of prompts, before any draft is verified."""
        now = perf_counter_ns()
        for request, chunk in pieces:
            request.cached += len(chunk.tokens)
            if chunk.rows_wanted:
                request.account.first_token = now

    def _prefill(self, request: RequestState) -> Chunk:
        """The next piece of a prompt; only its very last token gets logits."""
        end = len(request.prompt)
        if self._runner.can_roll_back:
            end = min(end, (request.cached // self._prefill_chunk + 1) * self._prefill_chunk)
        # A model that cannot roll back may not be able to take several tokens later on either.
        tokens = request.prompt[request.cached : end]
        last = end == len(request.prompt)
        return Chunk(slot_of(request), request.cached, tokens, len(tokens) - last)

    def _arm(self, request: RequestState) -> None:
        """Gives the request its proposer, or the reason why it has none."""
        if request.request.speculation == "off":
            return
        if not self._runner.can_roll_back:
            request.account.speculation_inactive = self._runner.rollback_reason
            return
        try:
            request.proposer = self._speculation.proposer_for(request)
        except Exception as error:
            request.drop_proposer(error)

    def _post(self, request: RequestState, step: Step) -> None:
        """Hands a step to the reader; the cache of a request that ends is free before it hears of it."""
        if step.finish_reason is not None:
            self._leave(request)
        request.mailbox.post(step)

    def _leave(self, request: RequestState) -> None:
        """The request is over: its cache is free for the next."""
        self._free(request)
        if request in self._running:
            self._running.remove(request)
        else:
            self._waiting.remove(request)

    def _free(self, request: RequestState) -> None:
        if request.slot is not None:
            # What a failed pass left behind is in doubt, but never counted as cached.
            self._slots.give_back(request.slot, request.prompt[: request.cached])
            request.slot = None
            self._speculation.release(request)

    def _fail(self, requests: Sequence[RequestState], error: Exception) -> None:
        if not isinstance(error, EngineError):
            failure = EngineError(f"a pass of the model failed ({type(error).__name__}: {error})")
            failure.__cause__ = error
            error = failure
        for request in requests:
            self._leave(request)
            request.mailbox.fail(error)


def slot_of(request: RequestState) -> int:
    """The cache slot of a request that runs."""
    assert request.slot is not None
    return request.slot.index
