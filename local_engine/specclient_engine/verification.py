"""Which part of a draft the target confirms.

The target's own token is drawn first at every row and then compared with the draft; the draft has no
say in it. The output is therefore the output without a draft, token for token, for greedy decoding and
for sampling alike (the noise of a position does not depend on the pass it is drawn in).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specclient_engine.api import FinishReason


@dataclass(frozen=True, slots=True)
class Verdict:
    """`tokens` to append (never none), of which the first `accepted` are the draft's."""

    tokens: list[int]
    accepted: int
    finish_reason: FinishReason | None


def verify(
    draft: Sequence[int],
    choose: Callable[[int], int],
    append: Callable[[int], FinishReason | None],
) -> Verdict:
    """Walks down the rows of one pass until the draft errs, the draft ends, or the output does.

    `choose(row)` is the target's token behind the last token (row 0) or behind `draft[row - 1]`.
    `append(token)` takes it into the output and says whether the output ends with it, so that the end
    of a text, a stop string or a cap holds inside a block exactly as it does between blocks.
    """
    tokens: list[int] = []
    accepted = 0
    while True:
        token = choose(len(tokens))
        matched = accepted < len(draft) and token == draft[accepted]
        tokens.append(token)
        accepted += matched
        finish_reason = append(token)
        if finish_reason is not None or not matched:
            return Verdict(tokens, accepted, finish_reason)


def within_vocabulary(draft: Sequence[int], vocab_size: int) -> int:
    """How many tokens of `draft` come before the first id that the model does not have."""
    return next((at for at, token in enumerate(draft) if not 0 <= token < vocab_size), len(draft))
