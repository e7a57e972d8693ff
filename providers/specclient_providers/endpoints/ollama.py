"""Ollama: ignores `prediction`; drafts with models of its own only."""

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
API = "https://github.com/ollama/ollama/blob/fb3076099/docs/api.md"
COMPATIBLE = "https://github.com/ollama/ollama/blob/fb3076099/openai/openai.go"
MODELFILE = "https://github.com/ollama/ollama/pull/15980"

ENDPOINT = Endpoint(
    name="ollama",
    title="Ollama",
    base_url="http://localhost:11434/v1",
    key_env=("OLLAMA_API_KEY",),
    self_hosted=True,
    no_prediction=Claim("ignored", COMPATIBLE, CHECKED),
    request=RequestRule(unknown_fields=Claim("ignored", COMPATIBLE, CHECKED)),
    answer=AnswerRule(
        figures=(
            *USAGE,
            Figure("prompt_tokens", ("prompt_eval_count",), "tokens", API, "Native API."),
            Figure("completion_tokens", ("eval_count",), "tokens", API, "Native API."),
            Figure("prefill", ("prompt_eval_duration",), "ns", API, "Native API."),
            Figure("decode", ("eval_duration",), "ns", API, "Native API."),
            Figure("ollama_load", ("load_duration",), "ns", API, "Loading and waiting together."),
            Figure("total", ("total_duration",), "ns", API, "Native API."),
        ),
        derived=(Derive("ttft", ("ollama_load", "prefill")),),
        ttft_includes_queue=True,
        timings=Claim("documented", API, CHECKED, note="Native API only; /v1 reports three token counts."),
    ),
    speculation=SpeculationRule(
        Claim("documented", MODELFILE, CHECKED),
        methods=("draft-mtp", "draft-dflash"),
        per_request="options.draft_num_predict of the native API; a new value reloads the model",
    ),
    restrictions=("No n-gram drafting, so known text in the prompt speeds nothing up.",),
)
