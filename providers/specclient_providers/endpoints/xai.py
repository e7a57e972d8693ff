"""xAI: no prediction; its zero counters mean nothing."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Caution, Claim, Endpoint, RequestRule
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="xai",
    title="xAI",
    base_url="https://api.x.ai/v1",
    key_env=("XAI_API_KEY",),
    telemetry_name="x_ai",
    no_prediction=Claim("undocumented", "xai-sdk 1.21.0, proto", CHECKED),
    request=RequestRule(
        cautions=tuple(
            Caution(
                parameter,
                f"xAI refuses {parameter}, even at 0",
                "https://github.com/miaoxworld/NativeTavern/issues/83",
            )
            for parameter in ("presence_penalty", "frequency_penalty")
        ),
    ),
    answer=AnswerRule(
        figures=USAGE_WITH_PREDICTION,
        counters=Claim(
            "undocumented",
            "https://github.com/Helicone/helicone/pull/5817",
            CHECKED,
            certainty="secondary",
            note="Present and always 0, which proves nothing.",
        ),
    ),
)
