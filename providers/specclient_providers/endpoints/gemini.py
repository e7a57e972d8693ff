"""Gemini through its OpenAI-compatible address: no prediction; one total in a header."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, Figure
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

ENDPOINT = Endpoint(
    name="gemini",
    title="Google Gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    telemetry_name="gcp.gemini",
    api_prefix="/v1beta/openai",
    no_prediction=Claim("undocumented", "google-genai 3.6.1, types.py", CHECKED),
    answer=AnswerRule(
        figures=(
            *USAGE,
            Figure(
                "total",
                ("header:server-timing",),
                "ms",
                None,
                "The front end's total, seen in captured answers; it cannot cover a stream.",
            ),
        ),
        timings=Claim(
            "undocumented",
            None,
            CHECKED,
            certainty="secondary",
            note="server-timing: gfet4t7; dur=… is sent all the same, as captured answers show.",
        ),
    ),
)
