"""vLLM: ignores `prediction`; drafts from the prompt when started with n-gram or suffix speculation."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Caution,
    Claim,
    Derive,
    Endpoint,
    Figure,
    RequestId,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.endpoints.openai import include_usage
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
TIMING_DOCS = "https://docs.vllm.ai/en/v0.32.0/features/per_request_metrics/"
SPEC_DOCS = "https://docs.vllm.ai/en/v0.32.0/features/speculative_decoding/acceptance_metrics/"
REQUEST_ID_DOCS = "https://docs.vllm.ai/en/latest/api/vllm/entrypoints/serve/middleware/x_request_id/"
WHEEL = "vllm 0.33.0"

_SPEC = "metrics.speculative_decoding"
_OLD = "choices.0.speculative_decoding_stats"
METRICS = (
    Figure("queue", ("metrics.queue_time_ms",), "ms", TIMING_DOCS),
    Figure(
        "prefill",
        ("metrics.time_to_first_token_ms",),
        "ms",
        TIMING_DOCS,
        "Starts at scheduling, so in spite of its name it is the prefill, without the queue.",
    ),
    Figure("decode", ("metrics.generation_time_ms",), "ms", TIMING_DOCS),
    Figure("drafted", (f"{_SPEC}.num_draft_tokens", f"{_OLD}.num_draft_tokens"), "tokens", SPEC_DOCS),
    Figure(
        "accepted_draft",
        (f"{_SPEC}.num_accepted_draft_tokens", f"{_OLD}.num_accepted_draft_tokens"),
        "tokens",
        SPEC_DOCS,
    ),
    Figure(
        "mean_acceptance_length",
        (f"{_SPEC}.mean_acceptance_length", f"{_OLD}.mean_acceptance_length"),
        "count",
        SPEC_DOCS,
    ),
    Figure(
        "acceptance_rate",
        (f"{_SPEC}.draft_acceptance_rate", f"{_OLD}.draft_acceptance_rate"),
        "ratio",
        SPEC_DOCS,
    ),
)
DERIVED = (
    Derive("ttft", ("queue", "prefill")),
    Derive("total", ("queue", "prefill", "decode")),
)

ENDPOINT = Endpoint(
    name="vllm",
    title="vLLM",
    base_url="http://localhost:8000/v1",
    key_env=("VLLM_API_KEY",),
    self_hosted=True,
    no_prediction=Claim(
        "ignored",
        "https://github.com/vllm-project/vllm/pull/24568",
        CHECKED,
        note="Accepted with a 200 and never read; every patch for it was closed unmerged.",
    ),
    request=RequestRule(
        unknown_fields=Claim("ignored", f"{WHEEL}, entrypoints/openai (extra fields are allowed)", CHECKED),
        opt_ins=(include_usage(TIMING_DOCS, CHECKED),),
        request_id=RequestId("x-request-id", REQUEST_ID_DOCS, CHECKED),
        cautions=(
            Caution(
                "min_p>0", "vLLM refuses min_p while it speculates", f"{WHEEL}, sampling_params.py", True
            ),
            Caution(
                "logit_bias",
                "vLLM refuses logit_bias while it speculates",
                f"{WHEEL}, sampling_params.py",
                True,
            ),
        ),
    ),
    answer=AnswerRule(
        figures=(*USAGE, *METRICS),
        derived=DERIVED,
        ttft_includes_queue=True,
        counters=Claim(
            "documented", SPEC_DOCS, CHECKED, note="Needs --per-request-spec-decode-metrics summary; n = 1."
        ),
        timings=Claim("documented", TIMING_DOCS, CHECKED, note="Needs --enable-per-request-metrics; n = 1."),
    ),
    speculation=SpeculationRule(
        Claim("documented", "https://docs.vllm.ai/en/latest/features/speculative_decoding/", CHECKED),
        methods=(
            "ngram",
            "ngram_gpu",
            "suffix",
            "draft_model",
            "eagle",
            "eagle3",
            "mtp",
            "dflash",
            "dspark",
            "custom_class",
        ),
        prompt_methods=("ngram", "ngram_gpu", "suffix"),
        switch_on="""--speculative-config '{"method": "ngram", "num_speculative_tokens": 5, """
        """"prompt_lookup_max": 5}' --enable-per-request-metrics --per-request-spec-decode-metrics summary""",
    ),
    restrictions=(
        "No per-request switch for speculation; medusa and mlp_speculator are gone in 0.33.0.",
        "Per-request times came with 0.27.1, acceptance after it; both were verified in 0.33.0.",
    ),
)
