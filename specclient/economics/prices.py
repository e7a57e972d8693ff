"""Money, at the prices that the user gave."""

from __future__ import annotations

from collections.abc import Mapping

from specclient.report import Report

MILLION = 1_000_000


def money_added(report: Report, prices: Mapping[str, float]) -> float | None:
    """What was billed beyond the visible output, in the currency of the prices.

    Prices are per million tokens; rejected tokens are billed as output unless there is a price for
    `rejected`. None where the endpoint does not say what it billed, or the user not what that costs.
    """
    extra = report.prediction.extra_billed_tokens
    price = prices.get("rejected", prices.get("output"))
    return None if extra is None or price is None else extra * price / MILLION
