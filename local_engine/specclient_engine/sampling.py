"""From one row of logits to one token, as a pure function of the row, the history and the position.

One row at a time, on purpose: nothing here can depend on how many rows a pass had, and verification
stops at the first row that disagrees with the draft, so that later rows are never looked at.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from specclient_engine.api import SamplingParams, TokenLogprob
from specclient_engine.noise import gumbel

Row = npt.NDArray[np.float32]
Rows = tuple[Row, Row]
Ids = npt.NDArray[np.int64]

_TAIL = np.float32(1e-5)
"""Tokens that weigh less than this beside the best are drawn from together."""
_LEAST = (1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-26, 0.0)
"""Weights down to which survivors are looked for, one after the other: a sure model has few."""
_TAIL_ID = np.array([-1], dtype=np.int64)
_COLDEST, _HOTTEST = 1e-5, 1e30
"""Below the one a draw is the best token in all but name; both keep logits inside single precision."""


class Sampler:
    """Draws the tokens of one request. `seed=None` is replaced by a seed of its own.

    `position` in `choose` counts output tokens from 0. The history that penalties see is the prompt and
    what `append` was told.
    """

    def __init__(self, params: SamplingParams, prompt_ids: Iterable[int]) -> None:
        self._params = params
        self._greedy = params.temperature < _COLDEST
        self._seed = params.seed if params.seed is not None else secrets.randbits(63)
        self._generated: Counter[int] = Counter()
        self._penalised = _has_penalties(params)
        self._seen = set(prompt_ids) if params.repetition_penalty != 1.0 else set()
        self._seen_ids = np.fromiter(self._seen, dtype=np.int64)
        self._room = (np.empty(0, np.float32), np.empty(0, np.float32))
        self._bias_ids = np.fromiter(params.logit_bias.keys(), dtype=np.int64)
        self._bias = np.fromiter(params.logit_bias.values(), dtype=np.float32)

    @property
    def plain_greedy(self) -> bool:
        """Whether the choice is the row's highest logit, untouched: then no row need leave the device."""
        return self._greedy and not self._penalised and not len(self._bias_ids)

    def twin(self, prompt_ids: Iterable[int]) -> Sampler:
        """A sampler with the same noise and a history of its own, for a model that guesses the draws."""
        return Sampler(replace(self._params, seed=self._seed), prompt_ids)

    def choose(self, row: Row, position: int) -> int:
        """The token at `position`. `row` is not changed."""
        row = self._shape(row)
        if self._greedy:
            return int(row.argmax())
        weights, scores = soften(row, self._params.temperature, self._rows_like(row))
        ids = survivors(weights, self._params) if _filters(self._params) else None
        if ids is None:
            ids = self._head_or_tail(weights, position)
        return int(ids[np.argmax(scores[ids] + gumbel(self._seed, position, ids))])

    def _rows_like(self, row: Row) -> Rows:
        """Two rows to work in, kept: taking fresh memory costs more than the arithmetic."""
        if len(self._room[0]) != len(row):
            self._room = (np.empty_like(row), np.empty_like(row))
        return self._room

    def _head_or_tail(self, weights: Row, position: int) -> Ids:
        """The likely tokens, or the others: which of the two the token comes from, drawn first.

        The tail takes part as one token that weighs as much as all of its own. Noise for the whole of a
        large vocabulary would cost more than the rest of a step, and the tail is hardly ever drawn.
        """
        head = np.flatnonzero(weights >= _TAIL)
        tail = float(weights.sum(dtype=np.float64) - weights[head].sum(dtype=np.float64))
        if tail <= 0.0:
            return head
        best = np.max(np.log(weights[head]) + gumbel(self._seed, position, head))
        if best >= math.log(tail) + gumbel(self._seed, position, _TAIL_ID)[0]:
            return head
        return np.flatnonzero(weights < _TAIL)

    def logprobs(self, row: Row, token: int) -> tuple[TokenLogprob, tuple[TokenLogprob, ...]]:
        """`logprobs` for as many alternatives as the parameters ask for."""
        return logprobs(row, token, self._params.logprobs or 0, self._rows_like(row))

    def append(self, token: int) -> None:
        """`token` was taken into the output."""
        if self._penalised:
            self._generated[token] += 1
            if token not in self._seen:
                self._seen.add(token)
                self._seen_ids = np.append(self._seen_ids, token)

    def _shape(self, row: Row) -> Row:
        """The row with penalties and bias applied."""
        if self._penalised:
            row = penalise(row, self._generated, self._seen_ids, self._params)
        if len(self._bias_ids):
            row = row.copy()
            row[self._bias_ids] += self._bias
        return row


def _has_penalties(params: SamplingParams) -> bool:
    return bool(params.presence_penalty or params.frequency_penalty or params.repetition_penalty != 1.0)


def penalise(row: Row, generated: Counter[int], seen: Ids, params: SamplingParams) -> Row:
    """A copy of `row` with the penalties applied.

    Repetition (CTRL, arXiv 1909.05858) divides positive and multiplies negative logits of every token
    in `seen`, the prompt included; presence and frequency (OpenAI's API reference) subtract from the
    tokens `generated`.
    """
    row = row.copy()
    if params.repetition_penalty != 1.0 and len(seen):
        values = row[seen]
        factor = np.float32(params.repetition_penalty)
        row[seen] = np.where(values > 0, values / factor, values * factor)
    if generated and (params.presence_penalty or params.frequency_penalty):
        ids = np.fromiter(generated.keys(), dtype=np.int64)
        counts = np.fromiter(generated.values(), dtype=np.float32)
        row[ids] -= np.float32(params.presence_penalty) + np.float32(params.frequency_penalty) * counts
    return row


def soften(row: Row, temperature: float, room: Rows | None = None) -> Rows:
    """Weights (probabilities up to a factor, the best being 1) and their logarithms, made in `room`."""
    weights, scores = room if room is not None else (np.empty_like(row), np.empty_like(row))
    np.divide(row, np.float32(min(temperature, _HOTTEST)), out=scores)
    np.subtract(scores, scores.max(), out=scores)
    return np.exp(scores, out=weights), scores


def survivors(weights: Row, params: SamplingParams) -> Ids:
    """Ids of the tokens that top-k, top-p and min-p leave, each applied to what the one before left."""
    ids = _sorted_top(weights, params)
    kept = weights[ids].astype(np.float64)
    if params.top_k > 0:
        ids, kept = ids[: params.top_k], kept[: params.top_k]
    keep = len(ids)
    if params.top_p < 1.0:
        total = float(kept.sum() if params.top_k > 0 else weights.sum(dtype=np.float64))
        keep = max(1, int(np.searchsorted(np.cumsum(kept) - kept, params.top_p * total, side="left")))
    if params.min_p > 0.0:
        keep = max(1, min(keep, int((kept >= params.min_p).sum())))
    return ids[:keep]


def _sorted_top(weights: Row, params: SamplingParams) -> Ids:
    """The heaviest tokens, heaviest first, lower ids first among equals: at least all that will survive.

    Sorting a whole vocabulary is slow, and what survives nearly always lies close to the best.
    """
    by_mass = params.top_k == 0
    mass = params.top_p * float(weights.sum(dtype=np.float64)) if by_mass else 0.0
    ids = np.arange(0)
    for least in _LEAST:
        ids = np.flatnonzero(weights >= max(least, params.min_p))
        enough = weights[ids].sum(dtype=np.float64) >= mass if by_mass else len(ids) >= params.top_k
        if enough or params.min_p >= least:
            break
    return ids[np.argsort(-weights[ids], kind="stable")]


def _filters(params: SamplingParams) -> bool:
    return params.top_k > 0 or params.top_p < 1.0 or params.min_p > 0.0


def logprobs(
    row: Row, token: int, alternatives: int, room: Rows | None = None
) -> tuple[TokenLogprob, tuple[TokenLogprob, ...]]:
    """Log-probability of `token` and of the `alternatives` likeliest tokens, before any filter."""
    weights, values = soften(row, 1.0, room)
    total = math.log(float(weights.sum(dtype=np.float64)))
    top: list[int] = []
    if alternatives > 0:
        top = _sorted_top(weights, SamplingParams(top_k=alternatives))[:alternatives].tolist()
    return TokenLogprob(token, float(values[token]) - total), tuple(
        TokenLogprob(i, float(values[i]) - total) for i in top
    )
