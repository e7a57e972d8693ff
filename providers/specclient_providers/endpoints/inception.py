"""Inception (Mercury, a diffusion model): no prediction found."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="inception",
    title="Inception",
    base_url="https://api.inceptionlabs.ai/v1",
    key_env=("INCEPTION_API_KEY",),
    no_prediction=Claim(
        "undocumented", "https://docs.litellm.ai/docs/providers/inception", CHECKED, certainty="secondary"
    ),
    answer=AnswerRule(figures=USAGE),
)
