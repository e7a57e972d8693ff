"""DeepInfra: no prediction documented, no phase timing."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="deepinfra",
    title="DeepInfra",
    base_url="https://api.deepinfra.com/v1/openai",
    key_env=("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"),
    api_prefix="/v1/openai",
    no_prediction=Claim(
        "undocumented", "https://deepinfra.com/docs/openai_api", CHECKED, certainty="recalled"
    ),
    answer=AnswerRule(
        figures=USAGE,
        timings=Claim(
            "unknown",
            "https://deepinfra.com/docs/openai_api",
            CHECKED,
            certainty="recalled",
            note="The native API is recalled to report inference_status.runtime_ms; no phases.",
        ),
    ),
)
