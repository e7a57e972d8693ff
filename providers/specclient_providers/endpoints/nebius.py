"""Nebius: faster variants are models of their own (suffix -fast)."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="nebius",
    title="Nebius",
    base_url="https://api.tokenfactory.nebius.com/v1",
    key_env=("NEBIUS_API_KEY",),
    no_prediction=Claim("undocumented", "https://docs.tokenfactory.nebius.com/", CHECKED),
    answer=AnswerRule(figures=USAGE),
    restrictions=("A faster variant of a model is a model of its own, with the suffix -fast.",),
)
