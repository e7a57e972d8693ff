"""Fireworks AI: any model, on chat and text completions, as an object or a plain string."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Billing,
    Claim,
    Derive,
    Endpoint,
    Figure,
    HistoryRule,
    LengthRule,
    OptIn,
    PredictionRule,
    RequestRule,
    SpeculationRule,
)
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
GUIDE = "https://docs.fireworks.ai/guides/predicted-outputs"
SDK = "fireworks-ai 1.2.30, types/chat/completion_create_params.py"
SPECULATION = "https://docs.fireworks.ai/deployments/speculative-decoding"


def _metric(name: str, *spellings: str, unit: str = "s", note: str = "") -> Figure:
    paths: list[str] = []
    for spelling in spellings:
        paths += [
            f"perf_metrics.{spelling}",
            f"perf_metrics.fireworks-{spelling}",
            f"header:fireworks-{spelling}",
        ]
    return Figure(name, tuple(paths), unit, SDK, note)  # type: ignore[arg-type]  # one of the units


METRICS = (
    _metric("fw_predicted", "speculation-prompt-tokens", unit="tokens"),
    _metric(
        "accepted",
        "speculation-prompt-matched-tokens",
        "speculation-matched-tokens",
        unit="tokens",
        note="The second spelling is that of older servers.",
    ),
    _metric("fw_positions", "speculation-acceptance", unit="positions", note="Dedicated deployments only."),
    _metric("ttft", "server-time-to-first-token"),
    _metric("total", "server-processing-time"),
    _metric("fw_tokenizer_queue", "tokenizer-queue-duration", note="Dedicated deployments only."),
    _metric("fw_tokenizer", "tokenizer-duration", note="Dedicated deployments only."),
    _metric("fw_prefill_queue", "prefill-queue-duration", note="Dedicated deployments only."),
    _metric("fw_prefill", "prefill-duration", note="Dedicated deployments only."),
    _metric("fw_generation_queue", "generation-queue-duration", note="Dedicated deployments only."),
    _metric("decode", "generation-duration", note="Dedicated deployments only."),
    _metric("cached_tokens", "cached-prompt-tokens", unit="tokens"),
)
DERIVED = (
    Derive("rejected", ("fw_predicted",), ("accepted",)),
    Derive("queue", ("fw_prefill_queue",), optional=("fw_tokenizer_queue", "fw_generation_queue")),
    Derive("prefill", ("fw_prefill",), optional=("fw_tokenizer",)),
)

ENDPOINT = Endpoint(
    name="fireworks",
    title="Fireworks AI",
    base_url="https://api.fireworks.ai/inference/v1",
    key_env=("FIREWORKS_API_KEY",),
    api_prefix="/inference/v1",
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                GUIDE,
                CHECKED,
                note="Beta, for every model, and in addition to the deployment's own speculation.",
            ),
            apis=("chat", "completions"),
            shapes=("object", "parts", "string", "token_ids"),
            length_default=2048,
            preview=True,
        ),
    ),
    no_prediction=Claim("undocumented", GUIDE, CHECKED),
    request=RequestRule(
        unknown_fields=Claim("unknown"),
        opt_ins=(
            OptIn(
                "perf_metrics",
                "perf_metrics_in_response",
                True,
                ("perf_metrics",),
                SDK,
                CHECKED,
            ),
        ),
        length=(LengthRule("max_tokens", source=SDK),),
        history=HistoryRule(
            Claim(
                "rejected",
                "https://github.com/maximhq/bifrost/pull/1828",
                CHECKED,
                note="400 'Extra inputs are not permitted'; messages take reasoning_content.",
            ),
            takes=("reasoning_content",),
        ),
    ),
    answer=AnswerRule(
        figures=(*USAGE, *METRICS),
        derived=DERIVED,
        ttft_includes_queue=True,
        counters=Claim(
            "documented", GUIDE, CHECKED, note="Predicted and matched tokens in the performance metrics."
        ),
        timings=Claim(
            "documented", SDK, CHECKED, note="All phases on dedicated deployments, else two times."
        ),
        subset=False,
    ),
    speculation=SpeculationRule(
        Claim("documented", SPECULATION, CHECKED, note="Set on a deployment: draft model or n-gram length."),
        methods=("draft_model", "ngram"),
        per_request="speculation (text or token ids); rewrite_speculation on dedicated deployments",
    ),
    billing=Billing(False, GUIDE, "Free of charge at the time of writing."),
    restrictions=(
        "A prediction longer than max_tokens (2048 if not set) is cut.",
        "Not on the Anthropic-style messages endpoint. service_tier takes priority only.",
        "Temperature 0 is advised; a poor prediction may slow generation.",
    ),
)
