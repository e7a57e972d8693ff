"""Oracle OCI Generative AI: types a prediction, as a list of text parts only; requests are signed."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, PredictionRule
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
REFERENCE = (
    "https://docs.oracle.com/en-us/iaas/tools/python/latest/api/generative_ai_inference/models/"
    "oci.generative_ai_inference.models.StaticContent.html"
)

ENDPOINT = Endpoint(
    name="oci",
    title="OCI Generative AI",
    base_url=None,
    speaks_openai=False,
    prediction=(
        PredictionRule(
            Claim("documented", REFERENCE, CHECKED, note="Which models take it is not documented."),
            shapes=("parts",),
        ),
    ),
    no_prediction=Claim("undocumented", REFERENCE, CHECKED),
    answer=AnswerRule(
        figures=USAGE_WITH_PREDICTION,
        counters=Claim("documented", REFERENCE, CHECKED, note="A camelCase pair."),
    ),
    restrictions=("Restrictions beside other parameters are not documented.",),
)
