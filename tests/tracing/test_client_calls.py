"""Spans of real calls: the client, sync and async, over a played server, on every way out."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from tracing_helpers import Backend

import specclient
from specclient.config import load_config
from specclient.tracing import extract
from tests.server import (
    Close,
    Request,
    ScriptedServer,
    Stall,
    chunk,
    completion,
    data,
    error,
    finish,
    reply,
    role,
    sse,
    usage_chunk,
)
from tests.server import stream as play_stream

MESSAGES = [{"role": "user", "content": "PROMPT-sentinel"}]
KNOWN = "PREDICTION-sentinel"
ENDLESS = play_stream(data(role()), data(chunk("a")), data(chunk("b")), Stall())
WHOLE = sse(role(), chunk("a"), chunk("b"), finish(), usage_chunk(prompt_tokens=3, completion_tokens=2))


@pytest.fixture(autouse=True)
def no_context_leaks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    before = trace.get_current_span()
    with caplog.at_level(logging.DEBUG, "opentelemetry"):
        yield
    assert trace.get_current_span() is before
    assert "Failed to detach context" not in caplog.text


def arguments(server: ScriptedServer, backend: Backend, **rest: Any) -> dict[str, Any]:
    base = {"provider": "vllm", "model": "m", "base_url": f"{server.url}/v1", "api_key": "KEY-sentinel"}
    return {**base, "tracing": backend.options(), "max_retries": 0, **rest}


def exhaust(stream: Any) -> None:
    list(stream)


def leave_early(stream: Any) -> None:
    before = trace.get_current_span()
    for _ in stream:
        assert trace.get_current_span() is before
        break


def close(stream: Any) -> None:
    next(iter(stream))
    stream.close()


def with_break(stream: Any) -> None:
    with stream:
        leave_early(stream)


def with_error(stream: Any) -> None:
    def read() -> None:
        with stream:
            next(iter(stream))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()


def broken(stream: Any) -> None:
    with pytest.raises(specclient.APIError):
        list(stream)


def drop(stream: Any) -> None:
    next(iter(stream))


def never(stream: Any) -> None:
    pass


CUT = play_stream(data(role()), data(chunk("a")), Close())
WAYS = [
    (exhaust, WHOLE, {"completed"}),
    (leave_early, ENDLESS, {"abandoned"}),
    (close, ENDLESS, {"closed_by_caller"}),
    (with_break, ENDLESS, {"closed_by_caller"}),
    (with_error, ENDLESS, {"error", "closed_by_caller"}),
    (broken, CUT, {"error"}),
    (drop, ENDLESS, {"abandoned"}),
    (never, ENDLESS, {"abandoned"}),
]


def check_one(backend: Backend, outcomes: set[str]) -> None:
    span = backend.span("chat m")
    outcome = span.attributes["specclient.stream.outcome"]
    assert outcome in outcomes
    failed = outcome in ("error", "abandoned", "cancelled")
    assert (span.status.status_code is StatusCode.ERROR) is failed
    assert "sentinel" not in json.dumps([each.to_json() for each in backend.finished()])


@pytest.mark.parametrize(("way", "script", "outcomes"), WAYS)
def test_every_way_out_of_a_stream(
    backend: Backend, server: ScriptedServer, way: Any, script: Any, outcomes: set[str]
) -> None:
    server.play(script)
    with specclient.Client(**arguments(server, backend)) as client:
        stream = client.chat.completions.create(messages=MESSAGES, prediction=KNOWN, stream=True)
        way(stream)
        del stream
        gc.collect()
        check_one(backend, outcomes)
    server.wait_for(lambda served: served.open_connections == 0)


async def aexhaust(stream: Any) -> None:
    async for _ in stream:
        pass


async def aleave_early(stream: Any) -> None:
    before = trace.get_current_span()
    async for _ in stream:
        assert trace.get_current_span() is before
        break


async def aclose(stream: Any) -> None:
    await anext(aiter(stream))
    await stream.close()


async def awith_break(stream: Any) -> None:
    async with stream:
        await aleave_early(stream)


async def abroken(stream: Any) -> None:
    with pytest.raises(specclient.APIError):
        await aexhaust(stream)


async def adrop(stream: Any) -> None:
    await anext(aiter(stream))


async def cancel(stream: Any) -> None:
    task = asyncio.create_task(aexhaust(stream))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def timeout(stream: Any) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await aexhaust(stream)


AWAYS = [
    (aexhaust, WHOLE, {"completed"}),
    (aleave_early, ENDLESS, {"abandoned"}),
    (aclose, ENDLESS, {"closed_by_caller"}),
    (awith_break, ENDLESS, {"closed_by_caller"}),
    (abroken, CUT, {"error"}),
    (adrop, ENDLESS, {"abandoned"}),
    (cancel, ENDLESS, {"cancelled"}),
    (timeout, ENDLESS, {"cancelled"}),
]


@pytest.mark.parametrize(("way", "script", "outcomes"), AWAYS)
def test_every_way_out_of_an_async_stream(
    backend: Backend, server: ScriptedServer, way: Any, script: Any, outcomes: set[str]
) -> None:
    async def run() -> None:
        async with specclient.AsyncClient(**arguments(server, backend)) as client:
            stream = await client.chat.completions.create(messages=MESSAGES, prediction=KNOWN, stream=True)
            await way(stream)
            del stream
            gc.collect()
            await asyncio.sleep(0.05)  # what is dropped is closed by the loop
            check_one(backend, outcomes)

    server.play(script)
    asyncio.run(run())
    server.wait_for(lambda served: served.open_connections == 0)


def test_the_servers_own_span_joins(backend: Backend, server: ScriptedServer) -> None:
    """What vLLM does with --otlp-traces-endpoint: one SERVER span from the request's traceparent."""

    def answer(request: Request) -> Any:
        tracer = backend.tracer_provider.get_tracer("vllm")
        tracer.start_span("llm_request", extract(request.headers), SpanKind.SERVER).end()
        return reply(completion("x"))

    server.respond = answer
    with specclient.Client(**arguments(server, backend)) as client:
        client.chat.completions.create(messages=MESSAGES)
    call, theirs = backend.span("chat m"), backend.span("llm_request")
    assert theirs.parent.span_id == call.context.span_id
    assert theirs.context.trace_id == call.context.trace_id


@pytest.mark.parametrize("provider", ["vllm", "dynamo", "sglang", "openai_compatible"])
def test_a_servers_log_has_the_calls_name(backend: Backend, server: ScriptedServer, provider: str) -> None:
    """Where the server documents that it takes one; every try has its own."""
    server.play(error(503, "down"), reply(completion("x")))
    settings = arguments(server, backend, provider=provider, max_retries=1)
    with specclient.Client(**settings) as client:
        report = client.chat.completions.create(messages=MESSAGES).specclient
    names = [request.headers.get("x-request-id") for request in server.requests]
    span = backend.span("chat m")
    if provider in ("vllm", "dynamo"):
        prefix = f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
        assert names == [f"{prefix}-1", f"{prefix}-2"]
        assert report.request_id == span.attributes["specclient.request_id"] == names[1]
    else:
        assert names == [None, None]
        assert report.request_id is None


def test_the_callers_own_name_stays(backend: Backend, server: ScriptedServer) -> None:
    server.play(reply(completion("x")), reply(completion("x"), headers={"x-request-id": "theirs"}))
    with specclient.Client(**arguments(server, backend)) as client:
        for reported in ("mine", "theirs"):
            answer = client.chat.completions.create(messages=MESSAGES, extra_headers={"X-Request-Id": "mine"})
            assert answer.specclient.request_id == reported
    assert [request.headers["x-request-id"] for request in server.requests] == ["mine", "mine"]


def test_retries_are_attempts_of_one_call(backend: Backend, server: ScriptedServer) -> None:
    server.play(error(429, "slow down", headers={"retry-after-ms": "30"}), reply(completion("x")))
    with specclient.Client(**arguments(server, backend, max_retries=1)) as client:
        client.chat.completions.create(messages=MESSAGES)
    assert backend.names() == ["attempt", "attempt", "chat m"]
    first, second = (span for span in backend.finished() if span.name == "attempt")
    assert first.attributes["http.response.status_code"] == 429
    assert second.start_time - first.end_time >= 29_000_000
    assert backend.span("chat m").attributes["specclient.retry.backoff"] >= 0.029


def test_a_fallback_is_a_call_of_its_own_under_one_span(
    backend: Backend, server: ScriptedServer, tmp_path: Path
) -> None:
    server.play(error(503, "down"), reply(completion("x")))
    common = f'provider = "vllm"\nbase_url = "{server.url}/v1"\napi_key = "k"\nmax_retries = 0\n'
    path = tmp_path / "specclient.toml"
    path.write_text(
        f'[targets.a]\nmodel = "first"\nfallback = ["b"]\n{common}[targets.b]\nmodel = "second"\n{common}'
    )
    with specclient.Client(target="a", config=load_config(path), tracing=backend.options()) as client:
        client.chat.completions.create(messages=MESSAGES)
    over = backend.span("specclient.generate")
    first, second = backend.span("chat first"), backend.span("chat second")
    assert first.parent == second.parent == over.context
    assert first.attributes["error.type"] == "503"
    assert over.attributes["specclient.fallback.reason"] == "InternalServerError"
    assert over.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("stream", [False, True])
def test_retried_and_then_fallen_back_every_span_is_inside_its_parent(
    backend: Backend, server: ScriptedServer, tmp_path: Path, stream: bool
) -> None:
    again = {"retry-after-ms": "5"}

    def respond(request: Request) -> Any:
        if request.json["model"] == "first" or len(server.requests) == 3:
            return error(503, "down", headers=again)
        return WHOLE if stream else reply(completion("x"))

    server.respond = respond
    common = f'provider = "vllm"\nbase_url = "{server.url}/v1"\napi_key = "k"\nmax_retries = 1\n'
    path = tmp_path / "specclient.toml"
    path.write_text(
        f'[targets.a]\nmodel = "first"\nfallback = ["b"]\n{common}[targets.b]\nmodel = "second"\n{common}'
    )
    options = backend.options(phases="all")
    with specclient.Client(target="a", config=load_config(path), tracing=options) as client:
        answer = client.chat.completions.create(messages=MESSAGES, stream=stream)
        report = list(answer)[-1].specclient if stream else answer.specclient
    assert len(report.attempts) == 4
    spans = {span.context.span_id: span for span in backend.finished()}
    assert sum(span.name == "attempt" for span in spans.values()) == 4
    for span in spans.values():
        if span.parent is not None:
            over = spans[span.parent.span_id]
            assert over.start_time <= span.start_time <= span.end_time <= over.end_time, span.name


def test_reported_figures_become_phases(backend: Backend, server: ScriptedServer) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    usage |= {
        "queue_time": 0.000001,
        "prompt_time": 0.000002,
        "completion_time": 0.000003,
        "total_time": 0.000006,
    }
    server.play(reply(completion("x", usage=usage)))
    with specclient.Client(**arguments(server, backend, provider="groq")) as client:
        report = client.chat.completions.create(messages=MESSAGES).specclient
    assert report.timing.prefill.seconds == 2e-6
    assert backend.names() == ["chat m", "decode", "prefill", "queue"]
    root = backend.span("chat m")
    assert root.attributes["specclient.timing.anchor"] == "response_end"
    assert backend.span("queue").end_time == backend.span("prefill").start_time
    spans = [backend.span(name) for name in ("queue", "prefill", "decode")]
    assert all(root.start_time <= span.start_time <= span.end_time <= root.end_time for span in spans)


@pytest.mark.model
def test_the_engines_phases_are_exact(backend: Backend, smollm2_path: Path) -> None:
    from specclient.core import engines

    try:
        with specclient.Client(
            provider="local", model=str(smollm2_path), dtype="float32", tracing=backend.options()
        ) as client:
            stream = client.chat.completions.create(
                messages=[{"role": "user", "content": "Say: one two three"}],
                prediction="one two three",
                max_tokens=12,
                stream=True,
            )
            report = list(stream)[-1].specclient
    finally:
        engines.close_all()
    timing = report.timing
    assert timing.anchor == "engine_clock"
    assert timing.consistent is True
    root = next(span for span in backend.finished() if span.name.startswith("chat"))
    assert root.kind is SpanKind.INTERNAL
    assert str(smollm2_path) not in root.to_json()
    assert root.attributes["specclient.prediction.tokens"] == 3
    prefill, decode = backend.span("prefill"), backend.span("decode")
    assert prefill.end_time == decode.start_time
    assert decode.attributes["specclient.timing.source"] == "engine"
    whole = sum(phase.seconds for phase in (timing.queue, timing.prefill, timing.decode) if phase)
    assert whole == pytest.approx(timing.server_total.seconds, abs=1e-6)
