"""Morph: an apply model; the known text is part of the prompt, in a tag."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, PredictionRule, SpeculationRule
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
DOCS = "https://docs.morphllm.com/api-reference/prompting"

ENDPOINT = Endpoint(
    name="morph",
    title="Morph",
    base_url="https://api.morphllm.com/v1",
    key_env=("MORPH_API_KEY",),
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                DOCS,
                CHECKED,
                note="Not a field: tags of a user message.",
            ),
            models=("morph-v3-fast", "morph-v3-large", "auto"),
            shapes=("tags",),
        ),
    ),
    no_prediction=Claim("undocumented", DOCS, CHECKED),
    answer=AnswerRule(figures=USAGE),
    speculation=SpeculationRule(
        Claim("documented", DOCS, CHECKED, note="On the server, from the tagged text.")
    ),
)
