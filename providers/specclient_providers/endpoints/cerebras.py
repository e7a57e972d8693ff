"""Cerebras: predicted outputs for gpt-oss-120b in preview, and on dedicated endpoints by request."""

from datetime import date

from specclient_providers.endpoint import (
    AnswerRule,
    Billing,
    Claim,
    Conflict,
    Endpoint,
    Figure,
    HistoryRule,
    LengthRule,
    PredictionRule,
    RequestRule,
)
from specclient_providers.endpoints.openai import include_usage
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
GUIDE = "https://inference-docs.cerebras.ai/dedicated/predicted-outputs"
PARAMS = "cerebras-cloud-sdk 1.91.0, types/chat/completion_create_params.py"
SDK = "cerebras-cloud-sdk 1.91.0, types/chat/chat_completion.py"

TIME_INFO = (
    Figure("queue", ("time_info.queue_time",), "s", SDK),
    Figure("prefill", ("time_info.prompt_time",), "s", SDK),
    Figure("decode", ("time_info.completion_time",), "s", SDK),
    Figure(
        "total", ("time_info.total_time",), "s", SDK, "At least the sum of the phases; the rest is overhead."
    ),
)

ENDPOINT = Endpoint(
    name="cerebras",
    title="Cerebras",
    base_url="https://api.cerebras.ai/v1",
    hosts=("*.api.cerebras.ai",),
    key_env=("CEREBRAS_API_KEY",),
    prediction=(
        PredictionRule(
            Claim(
                "documented",
                GUIDE,
                CHECKED,
                note="Public preview for trial and developer accounts; dedicated endpoints by request.",
            ),
            models=("gpt-oss-120b",),
            conflicts=tuple(Conflict(parameter, source=GUIDE) for parameter in ("tools", "n>1", "logprobs")),
            preview=True,
        ),
        PredictionRule(
            Claim(
                "documented",
                GUIDE,
                CHECKED,
                until=date(2026, 5, 27),
                certainty="disputed",
                note="Named for a while by one of two stored copies of the page; the model is deprecated.",
            ),
            models=("llama3.1-8b",),
        ),
    ),
    no_prediction=Claim(
        "undocumented",
        GUIDE,
        CHECKED,
        note="For a dedicated endpoint that was granted it, say so in overrides.",
    ),
    request=RequestRule(
        opt_ins=(include_usage(PARAMS, CHECKED),),
        length=(
            LengthRule(
                "max_completion_tokens",
                source=PARAMS,
            ),
        ),
        history=HistoryRule(
            Claim(
                "rejected",
                "https://github.com/QwenLM/qwen-code/issues/11045",
                CHECKED,
                note="400 \"property 'reasoning_content' is unsupported\"; messages take reasoning.",
            ),
            takes=("reasoning",),
        ),
    ),
    answer=AnswerRule(
        figures=(*USAGE_WITH_PREDICTION, *TIME_INFO),
        counters=Claim("documented", SDK, CHECKED),
        timings=Claim("documented", SDK, CHECKED, note="All phases, in seconds, in time_info."),
    ),
    billing=Billing(
        True,
        GUIDE,
        "Rejected tokens are charged as output (a third party's summary of the page, of 2026-04-19); "
        "dedicated customers pay otherwise.",
    ),
    restrictions=(
        "Temperature 0 is advised. Only contiguous matches help.",
        "What it cannot go beside is from a third party's summary of the page, of 2026-04-19.",
        "By a field report nothing is accepted below about 170 completion tokens.",
        "With reasoning models, reasoning tokens can raise the rejected count a little.",
    ),
)
