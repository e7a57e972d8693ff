"""D: one span a call whichever way it ends, and times that say whose they are."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors import KEY, SyncDoor
from tests.server import (
    Close,
    Stall,
    Wait,
    chunk,
    completion,
    data,
    error,
    finish,
    reply,
    role,
    sse,
    stream,
    usage_chunk,
)

pytest.importorskip("opentelemetry.sdk")

from tests.tracing.tracing_helpers import Backend

PROMPT = "PROMPT-sentinel, long enough to be recognised"
KNOWN = "PREDICTION-sentinel, long enough to be recognised"
OUTPUT = "OUTPUT-sentinel"
MESSAGES = [{"role": "user", "content": PROMPT}]


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.tracer_provider.shutdown()
    made.meter_provider.shutdown()


@pytest.fixture
def traced(door: SyncDoor, backend: Backend) -> SyncDoor:
    door.make(tracing=backend.options())
    return door


def only(backend: Backend) -> Any:
    (span,) = (span for span in backend.finished() if span.name.startswith("chat"))
    return span


def attributes(backend: Backend) -> dict[str, Any]:
    return dict(only(backend).attributes)


WAYS = ["break", "close", "garbage", "error", "end"]


@pytest.mark.parametrize("way", WAYS)
def test_d1_one_span_whichever_way_out(traced: SyncDoor, backend: Backend, way: str) -> None:
    tail = {"error": [Close()], "end": [data(finish())]}.get(way, [Stall()])
    traced.server.play(stream(data(chunk("a")), data(chunk("b")), *tail))
    opened = traced.open()
    if way in ("error", "end"):
        try:
            list(opened)
        except Exception:
            assert way == "error"
    else:
        for _ in opened:
            break
        if way == "close":
            opened.close()
        del opened
        if traced.kind == "async":
            import asyncio

            gc.collect()
            traced.run(asyncio.sleep(0.02))
    gc.collect()
    span = only(backend)
    assert span.end_time is not None
    assert (
        span.attributes["specclient.stream.outcome"]
        == {
            "break": "abandoned",
            "garbage": "abandoned",
            "close": "closed_by_caller",
            "error": "error",
            "end": "completed",
        }[way]
    )


def test_d4_d5_d16_the_first_token_is_the_first_text(traced: SyncDoor, backend: Backend) -> None:
    traced.server.play(
        stream(data(role()), Wait(0.15), data(chunk("a")), data(finish()), data(usage_chunk()))
    )
    report = traced.read()[-1].specclient
    span, told = only(backend), attributes(backend)
    client = report.timing.client
    assert client.first_frame < client.first_content
    assert client.first_content > 0.14
    assert told["gen_ai.request.stream"] is True
    assert told["specclient.timing.time_to_first_content"] == pytest.approx(client.first_content)
    assert told["gen_ai.response.time_to_first_chunk"] == client.first_frame
    assert (span.end_time - span.start_time) / 1e9 > 0.14, "it began before the request"


FIRST = {
    "D7": chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}]),
    "D7-function": chunk(function_call={"name": "f", "arguments": ""}),
    "D7-refusal": chunk(refusal="No"),
    "D7-reasoning": chunk(reasoning_content="Hm"),
    "D9": chunk("whole answer", finish_reason="stop"),
}


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_anything_generated_is_a_first_token(traced: SyncDoor, backend: Backend, first: Any) -> None:
    traced.server.play(stream(data(role()), Wait(0.05), data(first), data(finish()), data(usage_chunk())))
    report = traced.read()[-1].specclient
    assert report.timing.client.first_content > 0.04
    assert attributes(backend)["specclient.timing.time_to_first_content"] > 0.04


def test_d9_one_chunk_divides_by_nothing(traced: SyncDoor, backend: Backend) -> None:
    traced.server.play(sse({**chunk("all", finish_reason="stop"), "usage": {"completion_tokens": 1}}))
    report = traced.read()[-1].specclient
    assert report.timing.client.receive == 0 or report.timing.client.receive is None
    assert attributes(backend)["gen_ai.usage.output_tokens"] == 1


def test_d11_the_last_chunks_usage_is_on_the_span(door: SyncDoor, backend: Backend) -> None:
    door.make(provider="cerebras", model="gpt-oss-120b", tracing=backend.options())
    details = {"accepted_prediction_tokens": 49, "rejected_prediction_tokens": 107}
    usage = usage_chunk(prompt_tokens=9, completion_tokens=226, completion_tokens_details=details)
    door.server.play(sse(chunk("a"), finish(), usage))
    door.read(prediction=KNOWN)
    told = attributes(backend)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (9, 226)
    assert told["specclient.prediction.accepted_tokens"] == 49
    assert told["specclient.prediction.rejected_tokens"] == 107


def test_d12_phases_only_where_a_server_gave_them(door: SyncDoor, backend: Backend) -> None:
    door.make(provider="groq", tracing=backend.options())
    times = {"queue_time": 0.001, "prompt_time": 0.002, "completion_time": 0.003, "total_time": 0.005}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2} | times
    door.server.play(reply(completion(usage=usage)), reply(completion()))
    timing = door.create().specclient.timing
    assert [timing.queue.seconds, timing.prefill.seconds, timing.decode.seconds] == [0.001, 0.002, 0.003]
    assert {timing.queue.source, timing.prefill.source, timing.decode.source} == {"server"}
    names = {
        key.rpartition(".")[2] for span in backend.finished() for key in span.attributes if "latency" in key
    }
    assert {"time_in_queue", "time_in_model_prefill", "time_in_model_decode"} <= names
    backend.spans.clear()
    timing = door.create().specclient.timing
    assert (timing.queue, timing.prefill, timing.decode) == (None, None, None)
    assert timing.client.await_headers is not None
    assert not [key for span in backend.finished() for key in span.attributes if "latency" in key]


def test_d14_tries_and_waits_are_apart(traced: SyncDoor, backend: Backend) -> None:
    traced.server.play(
        error(429, "slow down", {"retry-after-ms": "120"}),
        stream(Wait(0.03), data(chunk("a")), data(finish())),
    )
    report = traced.read()[-1].specclient
    first, second = report.attempts
    assert (first.status, first.error, second.status) == (429, "RateLimitError", 200)
    assert second.waited == pytest.approx(0.12)
    first_content = report.timing.client.first_content
    assert first_content < report.timing.total.seconds - 0.11, "counted from the try that succeeded"
    assert only(backend).attributes["specclient.retry.attempts"] == 2
    assert report.timing.total.seconds > 0.15


@pytest.mark.parametrize("broken", [False, True])
def test_d15_no_text_leaves_by_default(door: SyncDoor, backend: Backend, broken: bool) -> None:
    door.make(provider="fireworks", tracing=backend.options())
    door.server.play(
        error(400, f"You said {PROMPT} and {KNOWN} with {KEY}, and not {OUTPUT}")
        if broken
        else sse(chunk(OUTPUT), finish())
    )
    tools = [{"type": "function", "function": {"name": "f", "description": PROMPT}}]
    try:
        door.read(messages=MESSAGES, prediction=KNOWN, tools=tools, user=KEY)
    except Exception:
        assert broken
    told = "".join(span.to_json() for span in backend.finished())
    told += backend.metrics.get_metrics_data().to_json()
    assert "chat" in told
    for word in ("PROMPT-sentinel", "PREDICTION-sentinel", "OUTPUT-sentinel", KEY):
        assert word not in told
