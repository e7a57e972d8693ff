"""Causal attention of a few new positions over a cache of many, with grouped heads."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .kv import BLOCK

FEWEST_ROWS = 16
"""Matrix products of fewer rows go through other kernels, with another order of summation."""


def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, start: int) -> torch.Tensor:
    """Attention of positions `start`, `start + 1`, … over everything up to themselves.

    `query` is `[kv_heads, group, rows, head_dim]`, `keys` and `values` are `[kv_heads, positions,
    head_dim]`, and the answer is shaped as `query`. The heads of a group are folded into rows, so keys
    are never repeated. Softmax runs over fixed blocks with a running maximum (FlashAttention, arXiv
    2205.14135, algorithm 1): a row's sums are the same whatever rows are beside it. The cache must be
    whole blocks long.
    """
    missing = -(-FEWEST_ROWS // query.shape[1]) - query.shape[2]
    if missing > 0:
        return attend(F.pad(query, (0, 0, 0, missing)), keys, values, start)[:, :, : query.shape[2]]
    kv_heads, group, rows, width = query.shape
    folded = (query * width**-0.5).reshape(kv_heads, group * rows, width)
    position = torch.arange(start, start + rows, device=query.device).repeat(group)[:, None]
    peak = torch.full((kv_heads, group * rows, 1), -torch.inf, device=query.device)
    total = torch.zeros_like(peak)
    out = torch.zeros(kv_heads, group * rows, width, device=query.device)
    for first in range(0, min(start + rows, keys.shape[1]), BLOCK):
        block = slice(first, first + BLOCK)
        scores = torch.bmm(folded, keys[:, block].transpose(1, 2)).float()
        behind = torch.arange(first, first + scores.shape[2], device=query.device) > position
        scores.masked_fill_(behind, -torch.inf)
        new_peak = torch.maximum(peak, scores.amax(dim=2, keepdim=True))
        weights = torch.exp(scores - new_peak)
        shrink = torch.exp(peak - new_peak)
        total = total * shrink + weights.sum(dim=2, keepdim=True)
        out = out * shrink + torch.bmm(weights.to(values.dtype), values[:, block]).float()
        peak = new_peak
    return (out / total).to(query.dtype).view(kv_heads, group, rows, width)


def attend_sdpa(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, start: int) -> torch.Tensor:
    """As `attend`, through the framework's kernel: quicker, but its sums depend on the rows of the pass."""
    kv_heads, group, rows, width = query.shape
    seen = start + rows
    mask = torch.zeros(rows, seen, dtype=query.dtype, device=query.device)
    if rows > 1:
        mask.masked_fill_(torch.ones_like(mask, dtype=torch.bool).triu_(start + 1), -torch.inf)
    folded = query.reshape(1, kv_heads, group * rows, width)
    out = F.scaled_dot_product_attention(
        folded, keys[None, :, :seen], values[None, :, :seen], attn_mask=mask.repeat(group, 1)[None, None]
    )
    return out.view(kv_heads, group, rows, width)
