"""Azure OpenAI (Microsoft Foundry): by api-version and on the v1 route."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Auth,
    Billing,
    Claim,
    Conflict,
    Endpoint,
    OptIn,
    PredictionRule,
    RequestRule,
)
from specclient_providers.endpoints.openai import LENGTH_RULES
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
GUIDE = (
    "https://github.com/MicrosoftDocs/azure-ai-docs/blob/main/articles/foundry/openai/how-to/"
    "predicted-outputs.md"
)
UNTIL = date(2027, 4, 14)

_PARAMETERS = (
    "tools",
    "n>1",
    "logprobs",
    "presence_penalty>0",
    "frequency_penalty>0",
    "audio",
    "modalities",
)
"""Audio output is asked for by `modalities`."""
CONFLICTS = (
    *(Conflict(parameter, source=GUIDE) for parameter in _PARAMETERS),
    Conflict("max_completion_tokens", "rename:max_tokens", source=GUIDE),
)

ENDPOINT = Endpoint(
    name="azure",
    title="Azure OpenAI",
    base_url=None,
    hosts=("*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"),
    key_env=("AZURE_OPENAI_API_KEY",),
    telemetry_name="azure.ai.openai",
    auth=Auth("api-key", ""),
    versioned=True,
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                GUIDE,
                CHECKED,
                date(2025, 4, 14),
                UNTIL,
                certainty="disputed",
                note="A Microsoft table of 2026-07-07 retires these models on 2026-10-01 and 2026-10-14; "
                "later sources say 2027-04-14, and they were still served after October.",
            ),
            models=(
                "gpt-4o",
                "gpt-4o-2024-08-06",
                "gpt-4o-2024-11-20",
                "gpt-4o-mini",
                "gpt-4o-mini-2024-07-18",
                "gpt-4.1",
                "gpt-4.1-2025-04-14",
                "gpt-4.1-mini",
                "gpt-4.1-mini-2025-04-14",
                "gpt-4.1-nano",
                "gpt-4.1-nano-2025-04-14",
            ),
            api_version_from="2025-01-01-preview",
            conflicts=CONFLICTS,
            preview=True,
        ),
        PredictionRule(
            Claim(
                "rejected",
                "https://github.com/glowingjade/obsidian-smart-composer/issues/499",
                CHECKED,
                certainty="secondary",
                note="Seen at OpenAI, whose models these are.",
            ),
            models=("gpt-5*",),
        ),
    ),
    no_prediction=Claim("undocumented", GUIDE, CHECKED),
    request=RequestRule(
        unknown_fields=Claim(
            "rejected", "https://github.com/continuedev/continue/issues/2981", CHECKED, certainty="secondary"
        ),
        opt_ins=(
            OptIn(
                "include_usage",
                "stream_options.include_usage",
                True,
                ("usage",),
                "https://learn.microsoft.com/en-us/azure/ai-services/openai/reference",
                CHECKED,
                when="stream",
                api_version_from="2024-09-01-preview",
            ),
        ),
        length=LENGTH_RULES,
    ),
    answer=AnswerRule(figures=USAGE_WITH_PREDICTION, counters=Claim("documented", GUIDE, CHECKED)),
    billing=Billing(
        True, GUIDE, "Rejected tokens cost as output; mostly wrong predictions can be slower than none."
    ),
    restrictions=(
        "The base URL is that of your resource: https://RESOURCE.openai.azure.com.",
        "Not available in the South East Asia region.",
        "No timing is documented: only the caller's clock tells.",
    ),
)
