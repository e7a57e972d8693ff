"""A refusal of the prediction that comes as the first event of a 200: asked again below the SDK."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from specclient.middleware import last_report, predicting, report_of, unwrap, wrap, wrapping
from specclient.tracing import TracingOptions
from tests import server as scripted
from tests.server import Answer, Close, ScriptedServer, Stall
from tests.wrap.sdks import Sdk, text_of

pytestmark = pytest.mark.sdk

KNOWN = "def bar(): pass"
TAKES = {"prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}
REFUSED = {"error": {"message": "property 'prediction' is unsupported", "code": 400}}
ANSWER = (scripted.role(), scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish())

REFUSALS: dict[str, Answer] = {
    "alone": scripted.sse(REFUSED, done=False),
    "with done": scripted.sse(REFUSED),
    "after a comment": scripted.sse(b": processing\n\n", REFUSED),
    "named": scripted.stream(b"event: error\n" + scripted.data(REFUSED)),
    "bare": scripted.stream(b"event: error\n" + scripted.data(REFUSED["error"])),
    "in pieces": scripted.stream(*scripted.split(scripted.data(REFUSED), range(1, 60, 3))),
    "compressed": scripted.sse(REFUSED, gzip=True),
    "closed": scripted.sse(REFUSED, framing="close"),
    "as JSON": scripted.reply({"id": "x", "object": "error", "padding": "x" * 500, **REFUSED}),
    "held open": scripted.sse(REFUSED, Stall(), done=False),
}


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def taking(sdk: Sdk, spans: InMemorySpanExporter) -> Sdk:
    """Each SDK over an endpoint that is believed to take predictions."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    unwrap(sdk.client)
    wrap(
        sdk.client,
        provider="openai_compatible",
        overrides=TAKES,
        tracing=TracingOptions(tracer_provider=provider),
    )
    return sdk


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS)
def test_the_answer_without_the_prediction_comes_in_its_place(
    taking: Sdk, server: ScriptedServer, spans: InMemorySpanExporter, refused: Answer
) -> None:
    server.play(refused, scripted.sse(*ANSWER))
    with predicting(KNOWN):
        chunks = taking.stream()
    assert text_of(chunks) == "Hello"
    assert ["prediction" in request.json for request in server.requests] == [True, False]
    report = report_of(chunks[-1])
    assert report is not None
    assert report.prediction.outcome == "withheld"
    assert [(tried.status, tried.error) for tried in report.attempts] == [
        (200, "PredictionRefused"),
        (200, None),
    ]
    assert len([span for span in spans.get_finished_spans() if span.parent is None]) == 1
    server.play(scripted.sse(*ANSWER))
    with predicting(KNOWN):
        taking.stream()
    assert "prediction" not in server.requests[2].json, "the refusal is remembered"


def seen(sdk: Sdk) -> tuple[str, str]:
    try:
        with predicting(KNOWN):
            return "text", text_of(sdk.stream())
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize(
    "second",
    [scripted.error(503, "busy"), scripted.error(429, "busy"), scripted.reply(scripted.completion())],
    ids=["503", "429", "no stream"],
)
def test_where_no_stream_comes_in_its_place_the_refusal_stands(
    taking: Sdk, server: ScriptedServer, spans: InMemorySpanExporter, second: Answer
) -> None:
    bare = Sdk(taking.kind, server.origin, is_async=taking.is_async)
    server.play(scripted.sse(REFUSED))
    expected = seen(bare)
    bare.close()
    server.play(scripted.sse(REFUSED), second)
    assert seen(taking) == expected
    assert len(server.requests) == 3
    assert len([span for span in spans.get_finished_spans() if span.parent is None]) == 1


def test_a_second_answer_that_breaks_breaks_for_the_sdk(
    taking: Sdk, server: ScriptedServer, spans: InMemorySpanExporter
) -> None:
    broken = scripted.stream(scripted.data(scripted.chunk("Hel")), Close(), terminate=False)
    for second in (broken, scripted.raw(Close())):
        server.play(scripted.sse(REFUSED), second)
        kind, _ = seen(taking)
        assert kind != "text"
        wrapping._learned.clear()
    assert len([span for span in spans.get_finished_spans() if span.parent is None]) == 2


def test_once_anything_was_given_the_error_is_the_callers(taking: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.sse(scripted.chunk("Hel"), REFUSED))
    seen(taking)
    assert len(server.requests) == 1


def test_another_error_is_the_callers(taking: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.sse({"error": {"message": "The prompt 'prediction' was filtered."}}))
    seen(taking)
    assert len(server.requests) == 1


def test_both_connections_are_given_back(taking: Sdk, server: ScriptedServer) -> None:
    for _ in range(3):
        server.play(scripted.sse(REFUSED), scripted.sse(*ANSWER))
        assert seen(taking) == ("text", "Hello")
        wrapping._learned.clear()
    assert server.connections == 1


@pytest.mark.parametrize("is_async", [False], ids=["sync"])
def test_leaving_the_second_answer_closes_it(taking: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.sse(REFUSED), scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    with predicting(KNOWN):
        stream: Any = taking.open_stream()
        next(iter(stream))
    close = getattr(stream, "close", None) or stream.response.close
    close()
    server.wait_for(lambda seen: seen.open_connections == 0)
    report = last_report()
    assert report is not None
    assert len(report.attempts) == 2


@pytest.mark.parametrize("is_async", [False], ids=["sync"])
def test_dropping_the_second_answer_closes_it(taking: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.sse(REFUSED), scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    with predicting(KNOWN):
        stream: Any = taking.open_stream()
        next(iter(stream))
    del stream
    gc.collect()
    server.wait_for(lambda seen: seen.open_connections == 0)
