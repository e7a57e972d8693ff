"""LM Studio: a client may name a draft model; its own REST API reports drafts and times."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Claim,
    Derive,
    Endpoint,
    Figure,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
DOCS = "https://github.com/lmstudio-ai/docs/tree/c6854fb"

ENDPOINT = Endpoint(
    name="lm_studio",
    title="LM Studio",
    base_url="http://localhost:1234/v1",
    key_env=("LMSTUDIO_API_KEY",),
    self_hosted=True,
    no_prediction=Claim(
        "undocumented",
        DOCS,
        CHECKED,
        certainty="recalled",
        note="Closed source; assumed to be ignored.",
    ),
    request=RequestRule(unknown_fields=Claim("unknown", DOCS, CHECKED)),
    answer=AnswerRule(
        figures=(
            *USAGE,
            Figure("lms_total", ("stats.total_draft_tokens_count",), "tokens", DOCS),
            Figure("lms_ignored", ("stats.ignored_draft_tokens_count",), "tokens", DOCS),
            Figure("accepted_draft", ("stats.accepted_draft_tokens_count",), "tokens", DOCS),
            Figure("ttft", ("stats.time_to_first_token", "stats.time_to_first_token_seconds"), "s", DOCS),
            Figure("prompt_tokens", ("stats.input_tokens",), "tokens", DOCS, "/api/v1."),
            Figure("completion_tokens", ("stats.total_output_tokens",), "tokens", DOCS, "/api/v1."),
            Figure("reasoning_tokens", ("stats.reasoning_output_tokens",), "tokens", DOCS, "/api/v1."),
            Figure("lms_generation", ("stats.generation_time",), "s", DOCS),
        ),
        derived=(
            Derive("drafted", ("lms_total",), ("lms_ignored",)),
            Derive("drafted", ("lms_total",)),
            Derive("decode", ("lms_generation",)),
        ),
        counters=Claim("documented", DOCS, CHECKED, note="/api/v0 only: drafted is total without ignored."),
        timings=Claim("documented", DOCS, CHECKED, note="/api/v0 only: no queue."),
    ),
    speculation=SpeculationRule(
        Claim("documented", DOCS, CHECKED, since=date(2025, 2, 18)),
        methods=("draft_model", "mtp"),
        per_request="draft_model, at /api/v0",
    ),
    restrictions=("Neither /v1/chat/completions nor /api/v1 documents draft_model or draft counts.",),
)
