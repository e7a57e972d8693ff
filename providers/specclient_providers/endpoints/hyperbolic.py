"""Hyperbolic: no mention of predictions was found."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="hyperbolic",
    title="Hyperbolic",
    base_url="https://api.hyperbolic.xyz/v1",
    key_env=("HYPERBOLIC_API_KEY",),
    no_prediction=Claim("unknown", "https://docs.hyperbolic.xyz/", CHECKED, note="Nothing found either way."),
    answer=AnswerRule(figures=USAGE),
)
