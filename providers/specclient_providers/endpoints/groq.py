"""Groq: no prediction, but a full split of queue, prompt and completion time."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Claim,
    Derive,
    Endpoint,
    Figure,
    HistoryRule,
    LengthRule,
    RequestRule,
)
from specclient_providers.figures import usage_figures

CHECKED = date(2026, 11, 29)
SDK = "groq 1.7.0, types/completion_usage.py"

TIMES = (
    Figure("queue", ("usage.queue_time", "x_groq.usage.queue_time"), "s", SDK),
    Figure("prefill", ("usage.prompt_time", "x_groq.usage.prompt_time"), "s", SDK),
    Figure("decode", ("usage.completion_time", "x_groq.usage.completion_time"), "s", SDK),
    Figure(
        "groq_processing",
        ("usage.total_time", "x_groq.usage.total_time"),
        "s",
        SDK,
        "Prompt and completion time; the queue is not in it.",
    ),
)
DERIVED = (Derive("total", ("queue", "groq_processing")),)

ENDPOINT = Endpoint(
    name="groq",
    title="Groq",
    base_url="https://api.groq.com/openai/v1",
    key_env=("GROQ_API_KEY",),
    api_prefix="/openai/v1",
    no_prediction=Claim(
        "rejected",
        "https://github.com/glowingjade/obsidian-smart-composer/issues/450",
        CHECKED,
        certainty="secondary",
        note="400 \"property 'prediction' is unsupported\"; absent from groq 1.7.0.",
    ),
    request=RequestRule(
        unknown_fields=Claim(
            "rejected",
            "https://github.com/glowingjade/obsidian-smart-composer/issues/450",
            CHECKED,
            certainty="secondary",
        ),
        length=(
            LengthRule("max_completion_tokens", source="groq 1.7.0, types/chat/completion_create_params.py"),
        ),
        history=HistoryRule(
            Claim(
                "rejected",
                "https://github.com/tashfeenahmed/freellmapi/issues/1070",
                CHECKED,
                note="400 \"property 'reasoning_content' is unsupported\"; messages take reasoning.",
            ),
            takes=("reasoning",),
        ),
    ),
    answer=AnswerRule(
        figures=(*usage_figures("usage", "x_groq.usage", source=SDK), *TIMES),
        derived=DERIVED,
        timings=Claim(
            "documented", SDK, CHECKED, note="In usage; in streams in x_groq.usage of the last chunk."
        ),
    ),
    restrictions=("Speculation is a property of some models, not of a request.",),
)
