"""No shape of answer, however odd, ends in anything but an answer or an API error."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specclient.client.accumulator import Accumulator
from specclient.config import Timeout
from specclient.core.answer import Answer
from specclient.core.timeline import Timeline
from specclient.core.wire import Wire
from specclient.dry_run import plan
from specclient.errors import APIError
from specclient.types import ChatCompletion, ChatCompletionChunk, parse

KEYS = [
    "id",
    "object",
    "created",
    "model",
    "choices",
    "index",
    "delta",
    "message",
    "content",
    "text",
    "role",
    "finish_reason",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "completion_tokens_details",
    "accepted_prediction_tokens",
    "error",
    "code",
    "type",
    "logprobs",
    "reasoning_content",
    "thinking",
    "refusal",
    "specclient",
    "timings",
]

scalars = st.none() | st.booleans() | st.integers(-5, 600) | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars | st.sampled_from(["chat.completion", "error", "stop", "assistant"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
choice = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("index", "delta", "message", "text", "finish_reason"), values)
)
answers = st.dictionaries(st.sampled_from(KEYS), values, max_size=6) | st.fixed_dictionaries(
    {"choices": st.lists(choice, max_size=3)}, optional={"usage": values, "error": values, "id": values}
)
PLAN = plan({"messages": [], "model": "m"}, provider="openai_compatible", base_url="http://x")


def answer(streamed: bool) -> Answer:
    timeline = Timeline()
    timeline.attempt_started()
    return Answer(PLAN, Wire(Timeout(), timeline), streamed=streamed)


@settings(deadline=None, max_examples=150)
@given(st.lists(answers, max_size=4))
def test_streams(objects: list[dict[str, Any]]) -> None:
    reading, accumulator = answer(True), Accumulator()
    given_out: list[Any] = []
    try:
        for obj in objects:
            out = reading.event(obj)
            given_out += [] if out is None else [out]
        given_out.append(reading.end())
    except APIError:
        pass
    for out in given_out:
        accumulator.feed(parse(ChatCompletionChunk, out))
    accumulator.snapshot()
    reading.facts(reading.reading())


@settings(deadline=None, max_examples=150)
@given(answers | values)
def test_plain_answers(obj: Any) -> None:
    reading = answer(False)
    try:
        body = reading.body(obj)
    except APIError:
        return
    parse(ChatCompletion, body).to_json()
    reading.facts(reading.reading())
