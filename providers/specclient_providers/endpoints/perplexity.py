"""Perplexity: no prediction, no timing."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="perplexity",
    title="Perplexity",
    base_url="https://api.perplexity.ai",
    key_env=("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
    api_prefix="",
    no_prediction=Claim("undocumented", "perplexityai 0.46.1, types", CHECKED),
    answer=AnswerRule(figures=USAGE),
)
