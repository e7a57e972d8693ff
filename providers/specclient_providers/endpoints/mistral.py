"""Mistral: string content only, strict schema, no counters."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Billing,
    Claim,
    Conflict,
    Endpoint,
    HistoryRule,
    LengthRule,
    PredictionRule,
    RequestRule,
)
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
GUIDE = "https://docs.mistral.ai/capabilities/predicted-outputs"
CONFLICTS = (Conflict("n>1", source=GUIDE),)

ENDPOINT = Endpoint(
    name="mistral",
    title="Mistral AI",
    base_url="https://api.mistral.ai/v1",
    hosts=("*.api.mistral.ai",),
    key_env=("MISTRAL_API_KEY",),
    telemetry_name="mistral_ai",
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                GUIDE,
                CHECKED,
                certainty="disputed",
                note="The guide's FAQ and its sample name different models; this alias is in both.",
            ),
            models=("codestral-latest",),
            shapes=("object",),
            conflicts=CONFLICTS,
        ),
        PredictionRule(
            Claim(
                "documented",
                GUIDE,
                CHECKED,
                until=date(2026, 5, 31),
                certainty="secondary",
                note="Retired; the guide's sample still shows it.",
            ),
            models=("mistral-large-2411",),
            shapes=("object",),
            conflicts=CONFLICTS,
        ),
        PredictionRule(
            Claim(
                "documented",
                "https://github.com/braintrustdata/braintrust-proxy/issues/1005",
                CHECKED,
                until=date(2025, 11, 30),
                certainty="secondary",
            ),
            models=("codestral-2501",),
            shapes=("object",),
            conflicts=CONFLICTS,
        ),
        PredictionRule(
            Claim(
                "unknown",
                GUIDE,
                CHECKED,
                certainty="disputed",
                note="The guide's sample used this alias; its FAQ names the retired mistral-large-2411.",
            ),
            models=("mistral-large-latest",),
        ),
    ),
    no_prediction=Claim("undocumented", GUIDE, CHECKED),
    request=RequestRule(
        unknown_fields=Claim(
            "rejected",
            "https://github.com/mistralai/platform-docs-public/issues/7",
            CHECKED,
            note="422 extra_forbidden.",
        ),
        length=(
            LengthRule(
                "max_tokens",
                only=True,
                source="https://github.com/editor-code-assistant/eca/issues/231",
            ),
        ),
        history=HistoryRule(
            Claim(
                "rejected",
                "https://github.com/co-l/openfox/issues/220",
                CHECKED,
                note="422 extra_forbidden; messages take thinking as parts of their content.",
            ),
            thinking_parts=True,
        ),
    ),
    answer=AnswerRule(
        figures=USAGE,
        counters=Claim("undocumented", "mistralai 3.7.0, client/models/usageinfo.py", CHECKED),
        timings=Claim("undocumented", "mistralai 3.7.0, client/models/usageinfo.py", CHECKED),
    ),
    billing=Billing(False, GUIDE, "No effect on the price, by the guide's FAQ."),
    restrictions=(
        "Acceptance is not reported: only a comparison of times shows whether a prediction helped.",
        "Chat, agents and conversations; not fill-in-the-middle.",
        "The text may stand anywhere in the output.",
        "A forced beginning is another thing: prefix = true on the last assistant message.",
    ),
)
