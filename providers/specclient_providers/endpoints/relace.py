"""Relace: an apply model; the known text is part of the prompt, in a tag."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, PredictionRule, SpeculationRule
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
DOCS = "https://docs.relace.ai/api-reference/instant-apply/apply"

ENDPOINT = Endpoint(
    name="relace",
    title="Relace",
    base_url="https://instantapply.endpoint.relace.run/v1/apply",
    key_env=("RELACE_API_KEY",),
    api_prefix="/v1/apply",
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                DOCS,
                CHECKED,
                note="Not a field: tags of a user message, or fields of its own REST API.",
            ),
            models=("relace-apply-3", "auto"),
            shapes=("tags",),
        ),
    ),
    no_prediction=Claim("undocumented", DOCS, CHECKED),
    answer=AnswerRule(figures=USAGE),
    speculation=SpeculationRule(Claim("documented", DOCS, CHECKED, note="From the tagged text.")),
)
