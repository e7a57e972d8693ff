"""Whether a prediction is worth sending: `always`, `never`, or by evidence.

By evidence means: seconds per token with and without are compared. A prediction is withheld when it
probably loses time, or when the seconds that it saves cost more than allowed. The other choice is taken
now and then to see whether the opinion still holds, as often as costs at most a given share of the time;
where both are close, looking costs little and happens more. Which calls are held out is decided by a hash
of the request, so that a repeated request is treated the same and anybody can tell which ones they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from specclient.economics.evidence import Evidence, difference, t_probability
from specclient.economics.options import EconomicsOptions
from specclient.economics.state import Arm
from specclient.report import Reason

ENOUGH = 8
"""Calls of each kind before anything is concluded."""

PROBABLY = 0.6
"""Of losing, from which on a prediction is withheld: near a half, so that small losses are found too."""

MOST_LOOKS = 0.25
"""The largest share of calls that explore, where both choices seem equal."""

DOUBT = 1 / 3
"""Looks for each unit of the chance to be wrong; in simulations more cost more than they find."""

USELESS_BELOW: Mapping[str, tuple[int, str]] = {
    "cerebras": (200, "field report of 2026-06: nothing accepted below about 170 tokens of output"),
}
"""Provider -> characters below which predictions are known to bring nothing, and the source."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Send the prediction or not, and the reason to tell; `why` is for the telemetry."""

    send: bool
    why: Literal["always", "never", "short", "holdout", "measure", "evidence", "explore"]
    reason: Reason | None = None


def decide(
    options: EconomicsOptions,
    evidence: Mapping[Arm, Evidence],
    *,
    provider: str,
    chars: int,
    lot: float,
    chance: float,
) -> Decision:
    """The decision for one call: `lot` is the request's own, by `draw`; `chance` is new for each call."""
    if options.gate == "never":
        return Decision(False, "never", Reason(code="gate_never", text='The gate of this target is "never".'))
    short = _too_short(options, provider, chars)
    if short is not None:
        return Decision(False, "short", short)
    if lot < options.holdout:
        share = f"{options.holdout:.0%}"
        text = f"A share of {share} of calls runs without its prediction, to measure what it brings."
        return Decision(False, "holdout", Reason(code="holdout", text=text))
    if options.gate == "always":
        return Decision(True, "always")
    return _by_evidence(options, evidence, chance)


def _too_short(options: EconomicsOptions, provider: str, chars: int) -> Reason | None:
    limit: int | None = options.min_chars
    source: str | None = None
    if limit is None and options.gate == "auto" and provider in USELESS_BELOW:
        limit, source = USELESS_BELOW[provider]
    if limit is None or chars >= limit:
        return None
    text = f"The prediction has {chars} characters; below {limit} it brings nothing there."
    return Reason(code="prediction_too_short", text=text, source=source)


def _by_evidence(options: EconomicsOptions, evidence: Mapping[Arm, Evidence], chance: float) -> Decision:
    sent, without = evidence.get("sent", Evidence()), evidence.get("without", Evidence())
    if sent.calls < ENOUGH or without.calls < ENOUGH:
        text = (
            f"The gate is still measuring: {sent.calls:.0f} calls with and {without.calls:.0f} without "
            f"their prediction."
        )
        return Decision(sent.calls <= without.calls, "measure", Reason(code="gate_measure", text=text))
    gain, error, freedom = difference(without, sent)
    price = _price_in_seconds(options, sent)
    loses = t_probability((price - gain) / error, freedom) if error > 0 else float(price > gain)
    send = loses < PROBABLY
    told = _told(gain, without, sent, options, send=send)
    relative = abs(gain - price) / min(without.rate, sent.rate)
    share = _looks(options, relative, wrong=loses if send else 1 - loses)
    if chance < share:
        text = f"The gate looks whether its opinion still holds; {told}"
        return Decision(not send, "explore", Reason(code="gate_explore", text=text))
    return Decision(send, "evidence", Reason(code="gate_evidence", text=told[0].upper() + told[1:]))


def _looks(options: EconomicsOptions, relative: float, *, wrong: float) -> float:
    """The share of calls that look at the other choice: what the price of a look allows, and more as long as
    the opinion is likely to be `wrong`, or else one that comes from a few unlucky calls would last."""
    if options.explore == 0:
        return 0.0
    return min(options.explore / max(relative, 1e-9) + wrong * DOUBT, MOST_LOOKS)


def _price_in_seconds(options: EconomicsOptions, sent: Evidence) -> float:
    """What the extra money of a token is worth in seconds, at the price that a second may have."""
    if options.max_money_per_second is None or sent.money_rate <= 0:
        return 0.0
    if options.max_money_per_second == 0:
        return float("inf")
    return sent.money_rate / options.max_money_per_second


def _told(gain: float, without: Evidence, sent: Evidence, options: EconomicsOptions, *, send: bool) -> str:
    """The evidence in a sentence."""
    share = gain / without.rate
    what = f"saves {share:.0%} of the time" if gain >= 0 else f"costs {-share:.0%} more time"
    money = ""
    if options.max_money_per_second is not None and sent.money_rate > 0:
        cost = f"{sent.money_rate / gain:.3g}" if gain > 0 else "any money"
        money = f" at {cost} a second saved, {options.max_money_per_second:.3g} allowed"
    verdict = "it is sent" if send else "it is withheld"
    counted = f"{sent.calls:.0f} calls with and {without.calls:.0f} without"
    return f"by {counted}, the prediction {what}{money}: {verdict}."


def draw(*parts: str) -> float:
    """A number in [0, 1) from the text of a request."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return int.from_bytes(digest.digest(), "big") / 2**64
