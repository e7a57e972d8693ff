"""DeepSeek: prefix completion and fill-in-the-middle in beta, no prediction, null counters."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="deepseek",
    title="DeepSeek",
    base_url="https://api.deepseek.com",
    key_env=("DEEPSEEK_API_KEY",),
    api_prefix="",
    no_prediction=Claim("undocumented", "https://api-docs.deepseek.com/api/create-chat-completion", CHECKED),
    answer=AnswerRule(
        figures=USAGE_WITH_PREDICTION,
        counters=Claim(
            "undocumented",
            "https://github.com/mtrnix/metronix-memory/pull/140",
            CHECKED,
            certainty="secondary",
            note="The pair is present and null, which is not zero.",
        ),
    ),
    restrictions=(
        "Below /beta: a forced beginning (prefix = true on the last message), and fill-in-the-middle.",
    ),
)
