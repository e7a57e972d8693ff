"""Hugging Face TGI (in maintenance): ignores `prediction`; --speculate drafts n-grams from the prompt."""

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
SERVER = "https://github.com/huggingface/text-generation-inference/blob/db931fcf/router/src/server.rs"
DOCS = "https://github.com/huggingface/text-generation-inference/tree/db931fcf"

HEADERS = (
    Figure("tgi_queue", ("header:x-queue-time",), "ms", SERVER),
    Figure("tgi_validation", ("header:x-validation-time",), "ms", SERVER),
    Figure(
        "tgi_inference", ("header:x-inference-time",), "ms", SERVER, "Prefill and decode together; no split."
    ),
    Figure("total", ("header:x-total-time",), "ms", SERVER, "Plain answers only."),
    Figure("prompt_tokens", ("header:x-prompt-tokens",), "tokens", SERVER),
    Figure("completion_tokens", ("header:x-generated-tokens",), "tokens", SERVER),
)
DERIVED = (
    Derive("queue", ("tgi_queue",), optional=("tgi_validation",)),
    Derive("total", ("queue", "tgi_inference")),
)

ENDPOINT = Endpoint(
    name="tgi",
    title="Text Generation Inference",
    base_url="http://localhost:8080/v1",
    key_env=("HF_TOKEN",),
    self_hosted=True,
    no_prediction=Claim("ignored", SERVER, CHECKED, note="Never read."),
    request=RequestRule(unknown_fields=Claim("ignored", SERVER, CHECKED)),
    answer=AnswerRule(
        figures=(*USAGE, *HEADERS),
        derived=DERIVED,
        timings=Claim(
            "documented",
            SERVER,
            CHECKED,
            note="Headers of plain answers: queue, total; prefill and decode are not told apart.",
        ),
    ),
    speculation=SpeculationRule(
        Claim("documented", DOCS, CHECKED, note="n-gram, or the model's own Medusa heads."),
        methods=("ngram", "medusa"),
        prompt_methods=("ngram",),
        switch_on="--speculate 3",
    ),
    restrictions=(
        "In maintenance since 2025-12-11; the last release is 3.3.7.",
        "Streams report no times, and no answer reports acceptance.",
    ),
)
