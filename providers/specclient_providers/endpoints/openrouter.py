"""OpenRouter: routes to many endpoints, and forwards a prediction only to those that take it."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Claim,
    Endpoint,
    Figure,
    OptIn,
    PredictionRule,
    RequestRule,
)
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
REFERENCE = "https://openrouter.ai/docs/client-sdks/python/components/prediction"
METADATA = "openrouter 1.3.84, components"

ENDPOINT = Endpoint(
    name="openrouter",
    title="OpenRouter",
    base_url="https://openrouter.ai/api/v1",
    key_env=("OPENROUTER_API_KEY",),
    api_prefix="/api/v1",
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                REFERENCE,
                CHECKED,
                note="For models whose supported_parameters name it; which those are was not checked.",
            ),
            forced={"provider.require_parameters": True},
        ),
    ),
    no_prediction=Claim("undocumented", REFERENCE, CHECKED),
    request=RequestRule(
        unknown_fields=Claim(
            "ignored",
            REFERENCE,
            CHECKED,
            note="An upstream gets only the parameters it supports, unless require_parameters is set.",
        ),
        opt_ins=(
            OptIn(
                "openrouter_metadata",
                "header:X-OpenRouter-Metadata",
                "enabled",
                ("openrouter_metadata",),
                METADATA,
                CHECKED,
            ),
        ),
    ),
    answer=AnswerRule(
        figures=(
            *USAGE_WITH_PREDICTION,
            Figure(
                "total",
                ("openrouter_metadata.generation_time",),
                "ms",
                METADATA,
                "From the dispatch to the upstream to the end of its body.",
            ),
        ),
        counters=Claim("documented", "openrouter 1.3.84, components/chatusage.py", CHECKED),
        timings=Claim("documented", METADATA, CHECKED, note="One total; no phases."),
    ),
    restrictions=(
        "After the call GET /generation?id=… has latency and generation_time, in ms.",
        "A model's supported_parameters (GET /models) say whether it takes a prediction.",
    ),
)
