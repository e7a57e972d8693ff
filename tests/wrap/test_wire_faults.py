"""Every fault that our own clients survive, through wrapped SDKs: what the SDK alone would have made of it,
one span, which tells the error, and no connection more than without us."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from specclient.middleware import last_report, predicting, wrap
from specclient.tracing import TracingOptions
from tests.server import Answer, ScriptedServer, reply
from tests.wrap.sdks import KINDS, Sdk
from tests.wrap.test_same_as_bare import outcome
from tests.wrap.wire_faults import ERRORS, NOWHERE, PLAIN, SOME_PLAIN, SOME_STREAMS, STREAMS

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),  # the SDKs' models hold odd values
]

TAKES = {"opt_ins": [], "prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}
KINDER = {
    ("groq", "length-too-long"),
}
"""The text was whole and [DONE] had come: what is wrong behind it costs the answer no more."""

AS_SEEN = {"bad-utf8", "gzip-members", "gzip-members-apart", "control"}
"""Whether these are errors depends on who reads them, and how far: the SDKs and our clients disagree."""


class Pair:
    """A bare client and a wrapped one, each with a server of its own."""

    def __init__(self, name: str, *, is_async: bool) -> None:
        self.name = name
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.servers = [ScriptedServer(), ScriptedServer()]
        self.bare, self.wrapped = (
            Sdk(KINDS[name], server.origin, is_async=is_async) for server in self.servers
        )
        tracing = TracingOptions(tracer_provider=provider)
        wrap(self.wrapped.client, provider="openai_compatible", overrides=TAKES, tracing=tracing)

    def ask(self, which: int, answer: Answer, *, stream: bool) -> tuple[Any, int]:
        """What the caller sees, and how many connections were opened for it."""
        server = self.servers[which]
        before = server.connections
        seen = outcome((self.bare, self.wrapped)[which], server, answer, stream=stream)
        return seen, server.connections - before

    def close(self) -> None:
        for sdk in (self.bare, self.wrapped):
            sdk.close()
        for server in self.servers:
            server.close()


def opened(name: str, *, is_async: bool) -> Iterator[Pair]:
    pair = Pair(name, is_async=is_async)
    yield pair
    pair.close()


@pytest.fixture(scope="module", params=[False, True], ids=["sync", "async"])
def openai(request: pytest.FixtureRequest) -> Iterator[Pair]:
    yield from opened("openai", is_async=request.param)


@pytest.fixture(
    scope="module",
    params=[(name, is_async) for name in KINDS if name != "openai" for is_async in (False, True)],
    ids=lambda pair: f"{pair[0]}-{'async' if pair[1] else 'sync'}",
)
def other(request: pytest.FixtureRequest) -> Iterator[Pair]:
    name, is_async = request.param
    yield from opened(name, is_async=is_async)


def check(pair: Pair, name: str, answer: Answer, *, stream: bool) -> None:
    pair.spans.clear()
    bare, _ = pair.ask(0, answer, stream=stream)
    with predicting("known text"):
        wrapped, _ = pair.ask(1, answer, stream=stream)
    if (pair.name, name) not in KINDER:
        assert wrapped == bare
    if not pair.spans.get_finished_spans():
        gc.collect()  # some SDKs leave a stream that they cannot read as it is
    spans = [span for span in pair.spans.get_finished_spans() if span.parent is None]
    assert len(spans) == 1
    report = last_report()
    if not pair.wrapped.is_async:
        assert report is not None
        assert len(report.attempts) == 1
    if name not in AS_SEEN:
        told = spans[0].status.status_code.name == "ERROR"
        assert told == (name in ERRORS)


@pytest.mark.parametrize("name", STREAMS)
def test_openai_streams(openai: Pair, name: str) -> None:
    check(openai, name, STREAMS[name], stream=True)


@pytest.mark.parametrize("name", PLAIN)
def test_openai_plain(openai: Pair, name: str) -> None:
    check(openai, name, PLAIN[name], stream=False)


@pytest.mark.parametrize("name", SOME_STREAMS)
def test_the_others_streams(other: Pair, name: str) -> None:
    check(other, name, STREAMS[name], stream=True)


@pytest.mark.parametrize("name", SOME_PLAIN)
def test_the_others_plain(other: Pair, name: str) -> None:
    check(other, name, PLAIN[name], stream=False)


@pytest.mark.parametrize("location", NOWHERE)
def test_redirects_to_no_address(is_async: bool, location: str) -> None:
    for pair in opened("openai", is_async=is_async):
        answer = reply({}, 307, {"location": location})
        assert pair.ask(1, answer, stream=False) == pair.ask(0, answer, stream=False)


def test_connections_are_closed_or_given_back(openai: Pair) -> None:
    """After all that, no more are open than one that waits for the next call, and fewer were opened."""
    for server in openai.servers:
        server.wait_for(lambda seen: seen.open_connections <= 1)
    assert openai.servers[1].connections <= openai.servers[0].connections
