"""One request while it is in the engine: its text, its sampler, its place in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specclient_engine.account import Account
from specclient_engine.api import (
    Draft,
    FinishReason,
    GenerationRequest,
    Proposer,
    Step,
    Tokenizer,
    TokenLogprob,
)
from specclient_engine.handle import Mailbox
from specclient_engine.sampling import Row, Sampler
from specclient_engine.slot_pool import Slot
from specclient_engine.text import TextStream
from specclient_engine.verification import Verdict, verify, within_vocabulary

NO_DRAFT = Draft(tokens=(), sources=(), confidence=())
MAX_DRAFT = 128
"""Longest draft for one pass: the logits of all its rows are held at once. On long files drafts beyond 64
save 4 % of the time, those beyond 128 another 1 % (`benchmarks.replay`)."""

Choose = Callable[[int], int]
ReadRow = Callable[[int], Row]
Logprobs = tuple[TokenLogprob, tuple[TokenLogprob, ...]]


class RequestState:
    """The state of one request. Touched by the worker thread only.

    `limit` is the most tokens that it may generate, `room` the positions it needs in the cache,
    `cached` the length of its valid cache. The last generated token is not cached yet: it is the first
    token of the next pass.
    """

    def __init__(self, request: GenerationRequest, tokenizer: Tokenizer, limit: int) -> None:
        self.request = request
        self.prompt = list(request.prompt_ids)
        self.limit = limit
        self.room = len(self.prompt) + limit
        self.mailbox = Mailbox()
        self.account = Account(prompt_tokens=len(self.prompt))
        self.sampler = Sampler(request.sampling, self.prompt)
        self.slot: Slot | None = None
        self.cached = 0
        self.proposer: Proposer | None = None
        self._eos_ids = frozenset() if request.ignore_eos else tokenizer.eos_ids
        self._text = TextStream(tokenizer, self.prompt, request.stop)
        self._last_token: int | None = None

    @property
    def prefilled(self) -> bool:
        """Whether the whole prompt is cached and the first token known."""
        return self._last_token is not None

    @property
    def generated(self) -> int:
        """Tokens generated so far."""
        return self.account.completion_tokens

    def propose(self, vocab_size: int) -> Draft:
        """The proposer's draft, cut to what the vocabulary and the request's limit allow.

        A proposer that fails is dropped: it may cost the request its speed, never its answer.
        """
        room = min(MAX_DRAFT, self.limit - self.generated - 1)
        if self.proposer is None or room <= 0:
            return NO_DRAFT
        try:
            draft = self.proposer.propose(room)
        except Exception as error:
            self.drop_proposer(error)
            return NO_DRAFT
        return first_tokens(draft, min(room, within_vocabulary(draft.tokens, vocab_size)))

    def pass_tokens(self, draft: Draft) -> list[int]:
        """The tokens of the next decoding pass: the last one, and the draft behind it."""
        assert self._last_token is not None
        return [self._last_token, *draft.tokens]

    def take(self, draft: Draft, choose: Choose, row: ReadRow) -> Step:
        """Verifies `draft` against the rows of a pass; the step that tells what was confirmed.

        The first call has the one row behind the prompt. Rejected tokens fall off the cache here: what
        counts as cached is every token but the last.
        """
        decoding = self.prefilled
        verdict, chances = self._verify(draft, choose, row)
        if decoding:
            self.account.passed(draft.sources, verdict.accepted)
        self._last_token = verdict.tokens[-1]
        self.cached = len(self.prompt) + self.generated - 1
        reason = verdict.finish_reason
        if reason is None:
            self._tell_proposer(verdict, draft)
            text = self._text.take()
        else:
            self._settle(reason)
            text = self._text.finish()
        return Step(text=text, token_ids=tuple(verdict.tokens), logprobs=chances, finish_reason=reason)

    def cancel(self) -> Step:
        """Ends the request where it is; the step that shows what was held back."""
        self._settle("cancelled")
        return Step(text=self._text.finish(), token_ids=(), finish_reason="cancelled")

    def _verify(self, draft: Draft, choose: Choose, row: ReadRow) -> tuple[Verdict, tuple[Logprobs, ...]]:
        wanted = self.request.sampling.logprobs is not None
        chances: list[Logprobs] = []

        def choose_and_note(index: int) -> int:
            token = choose(index)
            if wanted:
                chances.append(self.sampler.logprobs(row(index), token))
            return token

        return verify(draft.tokens, choose_and_note, self._append), tuple(chances)

    def _append(self, token: int) -> FinishReason | None:
        self.sampler.append(token)
        self.account.completion_tokens += 1
        if token in self._eos_ids:
            return "stop"
        self._text.push(token)
        if self._text.stopped:
            return "stop"
        return "length" if self.generated >= self.limit else None

    def _tell_proposer(self, verdict: Verdict, draft: Draft) -> None:
        if self.proposer is None:
            return
        try:
            self.proposer.commit(verdict.tokens, draft, verdict.accepted)
        except Exception as error:
            self.drop_proposer(error)

    def drop_proposer(self, error: Exception) -> None:
        """Goes on without drafts, and says why."""
        self.proposer = None
        self.account.speculation_inactive = f"the proposer failed ({type(error).__name__})"

    def _settle(self, reason: FinishReason) -> None:
        account = self.account
        wanted = self.request.speculation == "auto"
        if wanted and not account.drafted and account.speculation_inactive is None:
            account.speculation_inactive = "nothing known matched what the model wrote"
        self.mailbox.stats = account.close(reason)


def first_tokens(draft: Draft, count: int) -> Draft:
    """The first `count` tokens of a draft."""
    if count >= len(draft.tokens):
        return draft
    return Draft(draft.tokens[:count], draft.sources[:count], draft.confidence[:count])


def generation_limit(prompt: Sequence[int], max_tokens: int | None, context: int) -> int:
    """Most tokens that may follow `prompt` in a context of that many positions; below 1: no room."""
    left = context - len(prompt)
    return left if max_tokens is None else min(left, max_tokens)
