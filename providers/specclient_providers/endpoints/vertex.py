"""Vertex AI: speculation is a property of self-deployed models."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, SpeculationRule
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="vertex",
    title="Google Vertex AI",
    base_url=None,
    hosts=("*-aiplatform.googleapis.com",),
    key_env=("VERTEX_ACCESS_TOKEN",),
    telemetry_name="gcp.vertex_ai",
    no_prediction=Claim("undocumented", "google-genai 3.6.1, types.py", CHECKED),
    answer=AnswerRule(figures=USAGE),
    speculation=SpeculationRule(
        Claim(
            "documented",
            "https://cloud.google.com/vertex-ai/docs/reference/rest/v1beta1/projects.locations.endpoints",
            CHECKED,
            note="DeployedModel.speculativeDecodingSpec: a draft model or n-grams, for self-deployed models.",
        ),
        methods=("draft_model", "ngram"),
    ),
    restrictions=("The base URL names project and region; the key is an OAuth access token.",),
)
