"""Anthropic through its OpenAI-compatible address: no prediction, no timing."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="anthropic",
    title="Anthropic",
    base_url="https://api.anthropic.com/v1",
    key_env=("ANTHROPIC_API_KEY",),
    no_prediction=Claim("undocumented", "anthropic 2.14.0, types/message_create_params.py", CHECKED),
    answer=AnswerRule(figures=USAGE),
    restrictions=("speed and service_tier are the only per-request speed controls of the native API.",),
)
