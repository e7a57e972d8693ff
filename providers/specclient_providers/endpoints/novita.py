"""Novita: no mention of predictions was found."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="novita",
    title="Novita",
    base_url="https://api.novita.ai/v3/openai",
    key_env=("NOVITA_API_KEY",),
    api_prefix="/v3/openai",
    no_prediction=Claim("unknown", "https://novita.ai/docs/", CHECKED, note="Nothing found either way."),
    answer=AnswerRule(figures=USAGE),
)
