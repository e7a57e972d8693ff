"""SambaNova: speculates by itself and reports times, without a queue."""

from datetime import date

from specclient_providers.endpoint import AnswerRule, Claim, Derive, Endpoint, Figure
from specclient_providers.figures import USAGE

CHECKED = date(2026, 11, 29)
SDK = "sambanova 1.13.0, types/chat/chat_completion_response.py"

ENDPOINT = Endpoint(
    name="sambanova",
    title="SambaNova",
    base_url="https://api.sambanova.ai/v1",
    key_env=("SAMBANOVA_API_KEY",),
    no_prediction=Claim("undocumented", SDK, CHECKED),
    answer=AnswerRule(
        figures=(
            *USAGE,
            Figure("ttft", ("usage.time_to_first_token",), "s", SDK),
            Figure("total", ("usage.total_latency",), "s", SDK),
            Figure("sn_start", ("usage.start_time",), "s", SDK, "Wall clock."),
            Figure("sn_end", ("usage.end_time",), "s", SDK, "Wall clock."),
            Figure("acceptance_rate", ("usage.acceptance_rate",), "ratio", SDK, "Its own drafts."),
        ),
        derived=(Derive("total", ("sn_end",), ("sn_start",)), Derive("decode", ("total",), ("ttft",))),
        counters=Claim("documented", SDK, CHECKED, note="usage.acceptance_rate, of its own speculation."),
        timings=Claim("documented", SDK, CHECKED, note="First token and total; no queue."),
    ),
)
