"""OpenAI. Predicted Outputs ends with the gpt-4o and gpt-4.1 models; newer models refuse it."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Billing,
    Claim,
    Conflict,
    Endpoint,
    Figure,
    LengthRule,
    OptIn,
    PredictionRule,
    RequestRule,
)
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
GUIDE = "https://developers.openai.com/api/docs/guides/predicted-outputs"
DEPRECATIONS = "https://developers.openai.com/api/docs/deprecations"
REFERENCE = "https://platform.openai.com/docs/api-reference/chat/create"
LENGTH_SOURCE = "https://github.com/caozhiyuan/copilot-api/issues/164"
SHUTDOWN_NOTE = "The shutdown date is the one in OpenAI's deprecations list as bundled by litellm 1.110.2."
SINCE = date(2024, 11, 4)

CONFLICTS = (
    Conflict("tools", source=GUIDE),
    Conflict("n>1", source=GUIDE),
    Conflict("logprobs", source=GUIDE),
    Conflict("presence_penalty>0", source=GUIDE),
    Conflict("frequency_penalty>0", source=GUIDE),
    Conflict("audio", source=GUIDE),
    Conflict("modalities", source=GUIDE),
    Conflict("max_completion_tokens", "rename:max_tokens", source=GUIDE),
)

REASONING_MODELS = ("gpt-5*", "gpt-6*", "o1*", "o3*", "o4*")
LENGTH_RULES = (
    LengthRule("max_completion_tokens", REASONING_MODELS, only=True, source=LENGTH_SOURCE),
    LengthRule(
        "max_completion_tokens", source="openai-python 3.57.0, types/chat/completion_create_params.py"
    ),
)
"""The older name is deprecated, and refused by newer models."""


def include_usage(source: str, checked: date) -> OptIn:
    """Ask a stream for its usage: the counts come in one more chunk, without choices."""
    return OptIn(
        "include_usage", "stream_options.include_usage", True, ("usage",), source, checked, when="stream"
    )


def _until(day: date) -> Claim:
    return Claim("documented", GUIDE, CHECKED, SINCE, day, note=SHUTDOWN_NOTE)


ENDPOINT = Endpoint(
    name="openai",
    title="OpenAI",
    base_url="https://api.openai.com/v1",
    hosts=("*.api.openai.com",),
    key_env=("OPENAI_API_KEY",),
    prediction=(
        PredictionRule(
            _until(date(2027, 1, 14)),
            models=(
                "gpt-4o",
                "gpt-4o-20??-??-??",
                "gpt-4o-mini",
                "gpt-4o-mini-20??-??-??",
                "gpt-4.1",
                "gpt-4.1-20??-??-??",
                "gpt-4.1-mini",
                "gpt-4.1-mini-20??-??-??",
            ),
            conflicts=CONFLICTS,
        ),
        PredictionRule(
            _until(date(2026, 10, 23)),
            models=("gpt-4.1-nano", "gpt-4.1-nano-20??-??-??"),
            conflicts=CONFLICTS,
        ),
        PredictionRule(
            Claim(
                "rejected",
                "https://github.com/glowingjade/obsidian-smart-composer/issues/499",
                CHECKED,
                certainty="secondary",
                note="400 unsupported_parameter, seen for gpt-5.x; inferred for later families.",
            ),
            models=("gpt-5*",),
        ),
        PredictionRule(
            Claim(
                "rejected",
                "https://community.openai.com/t/1110750/7",
                CHECKED,
                certainty="secondary",
                note="A table by users, of 2025.",
            ),
            models=("o1*", "o3-mini*", "gpt-4-turbo*", "gpt-4o-audio*", "chatgpt-4o*"),
        ),
    ),
    no_prediction=Claim("undocumented", GUIDE, CHECKED),
    request=RequestRule(
        unknown_fields=Claim(
            "rejected",
            "https://github.com/continuedev/continue/issues/2981",
            CHECKED,
            certainty="secondary",
            note="400 'Unrecognized request argument supplied'.",
        ),
        opt_ins=(include_usage(REFERENCE, CHECKED),),
        length=LENGTH_RULES,
    ),
    answer=AnswerRule(
        figures=(
            *USAGE_WITH_PREDICTION,
            Figure(
                "total",
                ("header:openai-processing-ms",),
                "ms",
                "https://platform.openai.com/docs/api-reference/debugging-requests",
                "Sent before a stream ends, so it is a total for plain answers only.",
            ),
        ),
        counters=Claim(
            "documented",
            "openai-python 3.57.0, types/completion_usage.py",
            CHECKED,
            note="Models that refuse predictions report the pair too, as zeros: it proves no support.",
        ),
        timings=Claim(
            "documented",
            "https://platform.openai.com/docs/api-reference/debugging-requests",
            CHECKED,
            note="One total in a header; no phases.",
        ),
    ),
    billing=Billing(True, GUIDE, "Rejected tokens are charged as output; accepted ones are ordinary output."),
    restrictions=(
        "Chat completions only: not in the Responses API, legacy completions or fill-in-the-middle.",
        "The guide is filed under legacy APIs. Streaming is recommended; text may match anywhere.",
        "GET /models tells each model's shutdown_date. service_tier is the one per-request speed control.",
    ),
)
