"""llama.cpp's llama-server: ignores `prediction`; n-gram drafters read the prompt; times in every answer."""

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
SERVER = "https://github.com/ggml-org/llama.cpp/blob/0c1e57098/tools/server/README.md"

TIMINGS = (
    Figure("prefill", ("timings.prompt_ms",), "ms", SERVER),
    Figure("decode", ("timings.predicted_ms",), "ms", SERVER),
    Figure("cached_tokens", ("timings.cache_n",), "tokens", SERVER),
    Figure("llama_prompt", ("timings.prompt_n",), "tokens", SERVER, "Without what came from the cache."),
    Figure("llama_predicted", ("timings.predicted_n",), "tokens", SERVER),
    Figure("drafted", ("timings.draft_n",), "tokens", SERVER, "Only present when something was drafted."),
    Figure("accepted_draft", ("timings.draft_n_accepted",), "tokens", SERVER),
)
DERIVED = (
    Derive("prompt_tokens", ("llama_prompt", "cached_tokens")),
    Derive("completion_tokens", ("llama_predicted",)),
)

ENDPOINT = Endpoint(
    name="llama_cpp",
    title="llama.cpp server",
    base_url="http://localhost:8080/v1",
    key_env=("LLAMA_API_KEY",),
    self_hosted=True,
    no_prediction=Claim(
        "ignored",
        "https://github.com/ggml-org/llama.cpp/pull/12127",
        CHECKED,
        note="Never read; the request for it is open since 2025-03-01.",
    ),
    request=RequestRule(unknown_fields=Claim("ignored", SERVER, CHECKED)),
    answer=AnswerRule(
        figures=(*USAGE, *TIMINGS),
        derived=DERIVED,
        counters=Claim(
            "documented", SERVER, CHECKED, note="timings.draft_n and draft_n_accepted, when drafting."
        ),
        timings=Claim("documented", SERVER, CHECKED, note="Always in the last object; no queue time."),
    ),
    speculation=SpeculationRule(
        Claim("documented", SERVER, CHECKED),
        methods=(
            "draft-simple",
            "draft-eagle3",
            "draft-mtp",
            "draft-dflash",
            "draft-dspark",
            "ngram-simple",
            "ngram-map-k",
            "ngram-map-k4v",
            "ngram-mod",
            "ngram-cache",
        ),
        prompt_methods=("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"),
        switch_on="--spec-type ngram-simple",
    ),
    restrictions=(
        "A plain draft model (-md) is loaded and not used without --spec-type draft-simple.",
        "The request fields speculative.n_max, n_min and p_min are in the README but not in the code today.",
    ),
)
