"""SGLang: ignores `prediction`; n-gram speculation can draft from a corpus that is loaded at run time."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Claim,
    Derive,
    Endpoint,
    Figure,
    OptIn,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.endpoints.openai import include_usage
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
WHEEL = "sglang 0.5.23"
PROTOCOL = "sglang 0.5.23, srt/entrypoints/openai/protocol.py"
DETAILS = "https://github.com/sgl-project/sglang/pull/33518"
CORPUS = "https://github.com/sgl-project/sglang/pull/22203"
DOCS = "https://github.com/sgl-project/sglang/blob/067ad4d3/docs/advanced_features/speculative_decoding.md"
SERVING = "sglang 0.5.23, srt/entrypoints/openai/serving_chat.py"

_META = ("meta_info", "choices.0.meta_info")
_DETAILS = ("sglext.spec_tokens_details", "sglext.spec_tokens_details.only", *_META)
_ALL_CHOICES = "sglext.spec_tokens_details.*"
"""With n > 1 it is a list: counts are summed, rates follow from the sums."""


def _meta(name: str, key: str, unit: str, note: str = "") -> Figure:
    paths = tuple(f"{where}.{key}" for where in _META)
    return Figure(name, paths, unit, f"{WHEEL}, srt/managers/tokenizer_manager.py", note)  # type: ignore[arg-type]


def _detail(name: str, *keys: str, unit: str = "tokens", note: str = "") -> Figure:
    places = (*_DETAILS, _ALL_CHOICES) if unit == "tokens" else _DETAILS
    paths = tuple(f"{where}.{key}" for key in keys for where in places)
    return Figure(name, paths, unit, DETAILS, note)  # type: ignore[arg-type]


FIGURES = (
    _meta("queue", "queue_time", "s", "Needs --enable-metrics."),
    _meta("sg_forward", "forward_entry_time", "s", "Wall clock."),
    _meta("sg_prefilled", "prefill_finished_time", "s", "Wall clock."),
    _meta("sg_finished", "request_finished_ts", "s", "Wall clock."),
    _meta("ttft", "first_token_latency", "s", "From receipt."),
    _meta("total", "e2e_latency", "s"),
    _detail("drafted", "spec_num_proposed_drafts", "spec_draft_token_num", note="Approximate."),
    _detail("accepted_draft", "spec_num_correct_drafts", "spec_accept_token_num"),
    _detail("forward_passes", "spec_verify_ct"),
    _detail("mean_acceptance_length", "spec_accept_length", unit="count"),
    _detail("acceptance_rate", "spec_accept_rate", unit="ratio"),
)
DERIVED = (
    Derive("prefill", ("sg_prefilled",), ("sg_forward",)),
    Derive("decode", ("sg_finished",), ("sg_prefilled",)),
)

ENDPOINT = Endpoint(
    name="sglang",
    title="SGLang",
    base_url="http://localhost:30000/v1",
    key_env=("SGLANG_API_KEY",),
    self_hosted=True,
    no_prediction=Claim("ignored", PROTOCOL, CHECKED, note="Never read."),
    request=RequestRule(
        unknown_fields=Claim("ignored", PROTOCOL, CHECKED),
        opt_ins=(
            include_usage(SERVING, CHECKED),
            OptIn("spec_tokens_details", "return_spec_tokens_details", True, ("sglext",), DETAILS, CHECKED),
            OptIn(
                "meta_info",
                "return_meta_info",
                True,
                ("choices.*.meta_info",),
                SERVING,
                CHECKED,
                when="plain",
                apis=("chat",),
            ),
        ),
    ),
    answer=AnswerRule(
        figures=(*USAGE, *FIGURES),
        derived=DERIVED,
        ttft_includes_queue=True,
        counters=Claim("documented", DETAILS, CHECKED, note="The drafted count is an approximation."),
        timings=Claim("documented", SERVING, CHECKED, note="Plain chat only; needs --enable-metrics."),
    ),
    speculation=SpeculationRule(
        Claim("documented", DOCS, CHECKED),
        methods=("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO"),
        corpus_methods=("NGRAM",),
        switch_on="--speculative-algorithm NGRAM --speculative-ngram-external-sam-budget 8",
    ),
    restrictions=(
        "Corpora are loaded one at a time; what exceeds the server's token cap is cut, with a note.",
        "NGRAM does not look at the prompt: only at earlier outputs and at loaded corpora.",
        f"A corpus ({CORPUS}) is shared by every user of the server and needs its admin key, if it has one.",
    ),
)
