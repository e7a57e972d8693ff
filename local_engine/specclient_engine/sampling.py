"""From one row of logits to one token, as a pure function of the row, the history and the position.

One row at a time, on purpose: nothing here can depend on how many rows a pass had, and verification
stops at the first row that disagrees with the draft, so that later rows are never looked at.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from specclient_engine.api import SamplingParams, TokenLogprob
from specclient_engine.noise import GUMBEL_SPREAD, gumbel

Row = npt.NDArray[np.float32]


class Sampler:
    """Draws the tokens of one request. `seed=None` is replaced by a seed of its own.

    `position` in `choose` counts output tokens from 0. The history that penalties see is the prompt and
    what `append` was told.
    """

    def __init__(self, params: SamplingParams, prompt_ids: Iterable[int]) -> None:
        self._params = params
        self._seed = params.seed if params.seed is not None else secrets.randbits(63)
        self._generated: Counter[int] = Counter()
        self._penalised = _has_penalties(params)
        self._seen = set(prompt_ids) if params.repetition_penalty != 1.0 else set()
        self._bias_ids = np.fromiter(params.logit_bias.keys(), dtype=np.int64)
        self._bias = np.fromiter(params.logit_bias.values(), dtype=np.float32)

    @property
    def plain_greedy(self) -> bool:
        """Whether the choice is the row's highest logit, untouched: then no row need leave the device."""
        return self._params.temperature == 0.0 and not self._penalised and not len(self._bias_ids)

    def choose(self, row: Row, position: int) -> int:
        """The token at `position`. `row` is not changed."""
        row = self._shape(row)
        if self._params.temperature == 0.0:
            return int(row.argmax())
        ids, scores = survivors(row, self._params)
        return int(ids[np.argmax(scores + gumbel(self._seed, position, ids))])

    def append(self, token: int) -> None:
        """`token` was taken into the output."""
        if self._penalised:
            self._generated[token] += 1
            self._seen.add(token)

    def _shape(self, row: Row) -> Row:
        """The row with penalties and bias applied."""
        if self._penalised:
            row = penalise(row, self._generated, self._seen, self._params)
        if len(self._bias_ids):
            row = row.copy()
            row[self._bias_ids] += self._bias
        return row


def _has_penalties(params: SamplingParams) -> bool:
    return bool(params.presence_penalty or params.frequency_penalty or params.repetition_penalty != 1.0)


def penalise(row: Row, generated: Counter[int], seen: set[int], params: SamplingParams) -> Row:
    """A copy of `row` with the penalties applied.

    Repetition (CTRL, arXiv 1909.05858) divides positive and multiplies negative logits of every token
    in `seen`, the prompt included; presence and frequency (OpenAI's API reference) subtract from the
    tokens `generated`.
    """
    row = row.copy()
    if params.repetition_penalty != 1.0 and seen:
        ids = np.fromiter(seen, dtype=np.int64)
        values = row[ids]
        factor = np.float32(params.repetition_penalty)
        row[ids] = np.where(values > 0, values / factor, values * factor)
    if generated and (params.presence_penalty or params.frequency_penalty):
        ids = np.fromiter(generated.keys(), dtype=np.int64)
        counts = np.fromiter(generated.values(), dtype=np.float32)
        row[ids] -= np.float32(params.presence_penalty) + np.float32(params.frequency_penalty) * counts
    return row


def survivors(row: Row, params: SamplingParams) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Ids and scores (logits over temperature) of the tokens that may be drawn, best first.

    In the order temperature, top-k, top-p, min-p, each over what the one before left. Tokens further
    below the best than any two noises lie apart can never win and are left out from the start; their
    probability still counts in top-p.
    """
    scaled = row.astype(np.float64) / params.temperature
    best = scaled.max()
    ids = np.flatnonzero(scaled >= best - GUMBEL_SPREAD)
    scores = scaled[ids]
    order = np.lexsort((ids, -scores)) if _filters(params) else None
    if order is None:
        return ids, scores
    ids, scores = ids[order], scores[order]
    total: float | None = None
    if params.top_k > 0:
        ids, scores = ids[: params.top_k], scores[: params.top_k]
    else:
        total = float(np.exp(scaled - best).sum())
    weights = np.exp(scores - best)
    keep = len(ids)
    if params.top_p < 1.0:
        before = np.cumsum(weights) - weights
        share = params.top_p * (total if total is not None else float(weights.sum()))
        keep = max(1, int(np.searchsorted(before, share, side="left")))
    if params.min_p > 0.0:
        keep = max(1, min(keep, int((weights >= params.min_p).sum())))
    return ids[:keep], scores[:keep]


def _filters(params: SamplingParams) -> bool:
    return params.top_k > 0 or params.top_p < 1.0 or params.min_p > 0.0


def logprobs(row: Row, token: int, alternatives: int) -> tuple[TokenLogprob, tuple[TokenLogprob, ...]]:
    """Log-probability of `token` and of the `alternatives` likeliest tokens, before any filter."""
    values = row.astype(np.float64)
    values -= values.max()
    values -= np.log(np.exp(values).sum())
    top: Sequence[int] = []
    if alternatives > 0:
        count = min(alternatives, len(values))
        candidates = np.argpartition(-values, count - 1)[:count]
        top = candidates[np.lexsort((candidates, -values[candidates]))].tolist()
    return TokenLogprob(token, float(values[token])), tuple(TokenLogprob(i, float(values[i])) for i in top)
