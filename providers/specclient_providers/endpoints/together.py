"""Together AI: speculation is set on a deployment; nothing in the request, nothing in the answer."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, SpeculationRule
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="together",
    title="Together AI",
    base_url="https://api.together.xyz/v1",
    hosts=("*.together.ai",),
    key_env=("TOGETHER_API_KEY",),
    telemetry_name="together_ai",
    no_prediction=Claim("undocumented", "together 3.1.1, types/chat/completion_create_params.py", CHECKED),
    answer=AnswerRule(figures=USAGE),
    speculation=SpeculationRule(
        Claim(
            "documented",
            "together 3.1.1, types (endpoint deployments and weights)",
            CHECKED,
            note="A deployment's speculator: a draft model, lookahead or multi-token prediction.",
        ),
        methods=("draft_model", "lookahead", "mtp", "eagle", "phoenix"),
    ),
)
