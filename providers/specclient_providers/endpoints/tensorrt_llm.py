"""TensorRT-LLM (`trtllm-serve`): refuses fields that it does not know, `prediction` among them."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Caution,
    Claim,
    Endpoint,
    Figure,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
PROTOCOL = "https://github.com/NVIDIA/TensorRT-LLM/blob/0076e939/tensorrt_llm/serve/openai_protocol.py"
DOCS = "https://github.com/NVIDIA/TensorRT-LLM/blob/04c8822c/docs/source/features/speculative-decoding.md"

ENDPOINT = Endpoint(
    name="tensorrt_llm",
    title="TensorRT-LLM",
    base_url="http://localhost:8000/v1",
    self_hosted=True,
    no_prediction=Claim("rejected", PROTOCOL, CHECKED, note='The request model says extra="forbid".'),
    request=RequestRule(
        unknown_fields=Claim("rejected", PROTOCOL, CHECKED),
        cautions=tuple(
            Caution(
                parameter,
                f"TensorRT-LLM refuses {parameter} while it speculates, unless started with enable_penalty",
                DOCS,
                when_speculating=True,
            )
            for parameter in ("repetition_penalty", "presence_penalty", "frequency_penalty")
        ),
    ),
    answer=AnswerRule(
        figures=(
            *USAGE,
            Figure("mean_acceptance_length", ("choices.0.avg_decoded_tokens_per_iter",), "count", PROTOCOL),
        ),
        counters=Claim("documented", PROTOCOL, CHECKED, note="Mean tokens per step only."),
        timings=Claim("undocumented", PROTOCOL, CHECKED, note="At /perf_metrics, emptied on reading."),
    ),
    speculation=SpeculationRule(
        Claim("documented", DOCS, CHECKED),
        methods=("Eagle3", "MTP", "NGram", "Draft_Target", "PARD", "DFlash", "DSpark", "SA"),
        prompt_methods=("NGram", "SA"),
        switch_on="speculative_config: {decoding_type: NGram, max_draft_len: 4} and "
        "disable_overlap_scheduler: true in its YAML",
    ),
    restrictions=(
        "The docs write DraftTarget, the code Draft_Target. The Responses API ignores unknown fields.",
        "NGram shares its pool between requests unless is_public_pool is false.",
    ),
)
