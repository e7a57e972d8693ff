"""The engine's nouns: what goes in, what comes out, and the seams between its rooms.

Token ids in, token ids and text out; nothing here knows of HTTP, and nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is drawn from the logits.

    The filters apply in the order penalties, logit bias, temperature, top-k, top-p, min-p.
    `temperature=0` is greedy. `top_k=0` and `min_p=0` are off. `logprobs` is the number of
    alternatives reported beside the chosen token (None: none at all).
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    logprobs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One prompt to continue.

    `predictions` are texts expected to reappear in the output. `stop` strings end the output before
    their first character. `max_tokens` None means up to the end of the context.

    `cache_salt`, a text that is not empty, keeps requests apart in time, as vLLM's parameter of that name
    (https://docs.vllm.ai/en/latest/design/prefix_caching/, "Cache Isolation for Security"): what an earlier
    request left behind, keys and values of its prompt and words to draft, is used only where the salt is the
    same. None is a salt of its own. Who knows a salt can tell by timing what was asked under it, so it
    should be random and secret. Answers do not depend on it.
    """

    prompt_ids: Sequence[int] = field(repr=False)
    predictions: Sequence[str] = field(default=(), repr=False)
    max_tokens: int | None = None
    stop: Sequence[str] = ()
    sampling: SamplingParams = SamplingParams()
    speculation: Literal["auto", "off"] = "auto"
    ignore_eos: bool = False
    cache_salt: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The target's own log-probability of a token, before the sampling filters."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one engine step added to one request: whole characters only.

    `token_ids` and `text` may be out of step by an unfinished character or a possible stop string that
    is held back. The last step of a request carries `finish_reason`.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[tuple[TokenLogprob, tuple[TokenLogprob, ...]], ...] = ()
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStats:
    """The account of one request.

    Stamps are `time.perf_counter_ns()`: `submitted` -> `scheduled` is the queue, -> `first_token` is
    prefill (taken right after the target's prefill, before any verification), -> `finished` is decode.
    `forward_passes` counts decoding passes only; `by_source` maps a draft source ("prediction",
    "suffix", "draft_model", …) to (drafted, accepted). `acceptance_histogram[n]` counts the passes that
    verified a draft and accepted n of its tokens. `cached_tokens` of the prompt were in the cache from an
    earlier request with the same `cache_salt`.
    """

    prompt_tokens: int
    completion_tokens: int
    forward_passes: int
    by_source: Mapping[str, tuple[int, int]]
    acceptance_histogram: tuple[int, ...]
    submitted: int
    scheduled: int
    first_token: int
    finished: int
    finish_reason: FinishReason
    cached_tokens: int = 0
    prediction_tokens: int | None = None
    """Tokens of the predictions themselves; None where none was followed."""
    drafting: int = 0
    """Nanoseconds of the decoding that went by while drafts were made, this request's and its neighbours'."""
    verifying: int = 0
    """Nanoseconds of the decoding that went by in the target's passes."""
    held_back: int = 0
    """Draft tokens that would have been verified had the passes not been shared with other requests."""
    speculation_inactive: str | None = None
    """Why nothing was drafted although speculation was asked for; None when it was active or off."""
    draft_model_inactive: str | None = None
    """Why a draft model that was loaded took no part in this request."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One stage of long work: `done` of `total` (None: unknown) in `unit`."""

    stage: Literal["download", "verify", "convert", "load", "measure"]
    label: str
    done: float
    total: float | None
    unit: Literal["bytes", "tensors", "steps"] = "bytes"


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens that may come next, one source for each, best guess first.

    `confidence` is the estimated probability of each token being accepted given that all before it
    were; the draft length policy multiplies them up.
    """

    tokens: tuple[int, ...]
    sources: tuple[str, ...]
    confidence: tuple[float, ...]


class Proposer(Protocol):
    """Makes draft tokens for one request. Token ids in, token ids out: no torch, no text.

    The engine calls `propose` before each pass and `commit` after it with the tokens that the target
    chose. A proposer may propose nothing; it may never assume that what it proposed was accepted.
    """

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens that may follow what was committed so far."""
        ...

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        """`tokens` were appended to the output; the first `accepted` of `drafted` were among them."""
        ...


class CostModel(Protocol):
    """This machine's seconds for one pass over `rows` new tokens with `context` tokens in the cache."""

    def seconds(self, rows: int, context: int) -> float: ...

    def observe(self, rows: int, context: int, seconds: float) -> None: ...

    def probe(self, rows: int) -> int | None:
        """A row count above `rows` whose cost should be tried again, if there is one."""
        ...


class Tokenizer(Protocol):
    """What the engine needs of a tokenizer."""

    eos_ids: frozenset[int]

    @property
    def vocab_size(self) -> int:
        """One more than the highest id."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of `text` as a continuation: no BOS, no special tokens parsed from it."""
        ...

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """As `encode`, with the [start, end) characters of each token."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`; incomplete characters become U+FFFD, special tokens vanish."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The raw bytes a token stands for; empty for special tokens."""
        ...
