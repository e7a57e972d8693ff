"""Our own gateway (`specclient serve`): takes `prediction` for every target behind it."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Endpoint, Figure, PredictionRule, RequestRule
from specclient_providers.endpoints.openai import include_usage
from specclient_providers.figures import USAGE_WITH_PREDICTION

CHECKED = date(2026, 11, 29)
SOURCE = "specclient, README.md"

_TIMING = "specclient.timing"
_PREDICTION = "specclient.prediction"
FIGURES = (
    *(
        Figure(name, (f"{_TIMING}.{key}.seconds",), "s", SOURCE)
        for name, key in (
            ("queue", "queue"),
            ("prefill", "prefill"),
            ("decode", "decode"),
            ("ttft", "time_to_first_token"),
            ("total", "total"),
        )
    ),
    Figure("accepted", (f"{_PREDICTION}.accepted_tokens",), "tokens", SOURCE),
    Figure("rejected", (f"{_PREDICTION}.rejected_tokens",), "tokens", SOURCE),
    Figure(
        "drafted", (f"{_PREDICTION}.drafted_tokens", "specclient.speculation.draft_tokens"), "tokens", SOURCE
    ),
    Figure("accepted_draft", ("specclient.speculation.accepted_draft_tokens",), "tokens", SOURCE),
    Figure("forward_passes", ("specclient.speculation.forward_passes",), "tokens", SOURCE),
)

ENDPOINT = Endpoint(
    name="specclient",
    title="specclient gateway",
    base_url="http://127.0.0.1:8377/v1",
    key_env=("SPECCLIENT_API_KEY",),
    self_hosted=True,
    prediction=(
        PredictionRule(
            Claim("documented", SOURCE, CHECKED),
            apis=("chat", "completions"),
            shapes=("object", "parts", "string"),
        ),
    ),
    no_prediction=Claim("undocumented", SOURCE, CHECKED),
    request=RequestRule(opt_ins=(include_usage(SOURCE, CHECKED),)),
    answer=AnswerRule(
        figures=(*USAGE_WITH_PREDICTION, *FIGURES),
        counters=Claim("documented", SOURCE, CHECKED),
        timings=Claim("documented", SOURCE, CHECKED, note="The report under the key 'specclient'."),
    ),
)
