"""Oracle OCI Generative AI, by its OpenAI-compatible address: a prediction is a list of text parts."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, LengthRule, PredictionRule, RequestRule
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
REFERENCE = (
    "https://docs.oracle.com/en-us/iaas/tools/python/latest/api/generative_ai_inference/models/"
    "oci.generative_ai_inference.models.StaticContent.html"
)
CHAT = "https://docs.oracle.com/en-us/iaas/Content/generative-ai/chat-completions-api.htm"

ENDPOINT = Endpoint(
    name="oci",
    title="OCI Generative AI",
    base_url=None,
    hosts=("inference.generativeai.*.oci.oraclecloud.com",),
    key_env=("OCI_GENAI_API_KEY",),
    api_prefix="/openai/v1",
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                REFERENCE,
                CHECKED,
                note=f"Typed by the native API as text parts; the compatible address takes OpenAI's format "
                f"({CHAT}). Which models take it is not documented.",
            ),
            shapes=("parts",),
        ),
    ),
    no_prediction=Claim("undocumented", REFERENCE, CHECKED),
    request=RequestRule(
        length=(
            LengthRule(
                "max_completion_tokens",
                ("openai.gpt-5*", "openai.o1*", "openai.o3*", "openai.o4*"),
                only=True,
                source="https://github.com/oracle/langchain-oracle/issues/41",
            ),
        ),
    ),
    answer=AnswerRule(
        figures=USAGE_WITH_PREDICTION,
        counters=Claim("documented", REFERENCE, CHECKED, note="A pair, in camelCase in the native API."),
        timings=Claim("undocumented", REFERENCE, CHECKED),
    ),
    restrictions=(
        "Restrictions beside other parameters are not documented.",
        "The base URL names the region: https://inference.generativeai.REGION.oci.oraclecloud.com/openai/v1; "
        "the key is a Generative AI API key of that region.",
        "The native API has a wire format of its own and signed requests: it is not spoken here.",
    ),
)
