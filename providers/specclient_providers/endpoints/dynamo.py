"""NVIDIA Dynamo: takes the field `prediction` and drops it; refuses fields that it does not know."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Claim,
    Derive,
    Endpoint,
    Figure,
    OptIn,
    RequestId,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
NVEXT = "https://github.com/ai-dynamo/dynamo/blob/main/docs/components/frontend/nvext.md"
TRACING = "https://github.com/ai-dynamo/dynamo/blob/c3e95cc4/docs/observability/tracing.md"
VALIDATE = "https://github.com/ai-dynamo/dynamo/blob/main/lib/llm/src/protocols/openai/validate.rs"

TIMING = (
    Figure("queue", ("nvext.timing.prefill_wait_time_ms",), "ms", NVEXT),
    Figure("prefill", ("nvext.timing.prefill_time_ms",), "ms", NVEXT),
    Figure("ttft", ("nvext.timing.ttft_ms",), "ms", NVEXT, "From the receipt of the request."),
    Figure("total", ("nvext.timing.total_time_ms",), "ms", NVEXT),
)
DERIVED = (Derive("decode", ("total",), ("ttft",)),)

ENDPOINT = Endpoint(
    name="dynamo",
    title="NVIDIA Dynamo",
    base_url="http://localhost:8000/v1",
    self_hosted=True,
    no_prediction=Claim(
        "ignored",
        "https://github.com/ai-dynamo/dynamo/blob/main/lib/protocols/src/types/chat.rs",
        CHECKED,
        certainty="secondary",
        note="A typed field that, by inference, reaches no engine.",
    ),
    request=RequestRule(
        unknown_fields=Claim("rejected", VALIDATE, CHECKED, note="'Unsupported parameter(s)'."),
        request_id=RequestId("x-request-id", TRACING, CHECKED),
        opt_ins=(OptIn("nvext_timing", "nvext.extra_fields", ["timing"], ("nvext.timing",), NVEXT, CHECKED),),
    ),
    answer=AnswerRule(
        figures=(*USAGE, *TIMING),
        derived=DERIVED,
        ttft_includes_queue=True,
        timings=Claim(
            "documented",
            NVEXT,
            CHECKED,
            note="On request, in nvext.timing of the last chunk; the prefill_ times may be absent.",
        ),
    ),
    speculation=SpeculationRule(
        Claim("documented", NVEXT, CHECKED, note="Whatever the workers were started with."),
        methods=("ngram", "eagle3", "mtp", "draft_model"),
        prompt_methods=("ngram",),
        switch_on="its vLLM workers' --speculative-config",
    ),
)
