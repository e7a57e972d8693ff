"""Baseten: lookahead and EAGLE are chosen when a deployment is built."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, SpeculationRule
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)

DOCS = "https://docs.baseten.co/engines/engine-builder-llm/lookahead-decoding"

ENDPOINT = Endpoint(
    name="baseten",
    title="Baseten",
    base_url="https://inference.baseten.co/v1",
    key_env=("BASETEN_API_KEY",),
    no_prediction=Claim("undocumented", DOCS, CHECKED),
    answer=AnswerRule(figures=USAGE),
    speculation=SpeculationRule(
        Claim(
            "documented",
            DOCS,
            CHECKED,
            note="Set when the engine is built (trt_llm.build.speculator); temperature is then forced to 0.",
        ),
        methods=("lookahead", "eagle"),
    ),
    restrictions=(
        "An engine with lookahead takes neither structured outputs nor tool calls.",
        "External draft models are discontinued; in BIS-LLM lookahead and EAGLE are gated features.",
    ),
)
