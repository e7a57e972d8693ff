"""NVIDIA NIM: the engine inside is vLLM or SGLang; the hosted API refuses fields that it does not know."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, RequestRule, SpeculationRule
from specclient_providers.endpoints import vllm
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
DOCS = "https://docs.nvidia.com/nim/large-language-models/latest/speculative-decoding.html"

ENDPOINT = Endpoint(
    name="nvidia_nim",
    title="NVIDIA NIM",
    base_url="https://integrate.api.nvidia.com/v1",
    key_env=("NVIDIA_API_KEY",),
    telemetry_name="nvidia",
    no_prediction=Claim("undocumented", DOCS, CHECKED),
    request=RequestRule(
        unknown_fields=Claim(
            "rejected",
            "https://github.com/NVIDIA/garak/issues/748",
            CHECKED,
            note="422 extra_forbidden.",
        ),
    ),
    answer=AnswerRule(
        figures=(*USAGE, *vllm.METRICS),
        derived=vllm.DERIVED,
        ttft_includes_queue=True,
        timings=Claim("unknown", DOCS, CHECKED, note="Whatever the engine inside reports is read."),
    ),
    speculation=SpeculationRule(
        Claim(
            "documented",
            DOCS,
            CHECKED,
            certainty="secondary",
            note="Chosen when a NIM is started: MTP first, else EAGLE3 or n-gram.",
        ),
        methods=("mtp", "eagle3", "ngram"),
        prompt_methods=("ngram",),
        switch_on="NIM_SPECDEC_ENABLE=1",
    ),
)
