"""What no honest peer sends costs the caller nothing that a bare client would have given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from specclient.middleware import last_report, wrap
from specclient.tracing import TracingOptions
from tests import server as scripted
from tests.server import Close, ScriptedServer

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}


def blocks_of(*blocks: bytes, kind: str = "application/json") -> Any:
    """A transport whose answers come in just these blocks, and the blocks that were asked for so far."""
    taken: list[bytes] = []

    class Body(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for block in blocks:
                taken.append(block)
                yield block

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": kind}, stream=Body())

    return httpx.MockTransport(answer), taken


def test_an_empty_object_stays_json(server: ScriptedServer) -> None:
    server.play(scripted.reply({}))
    with httpx.Client(base_url=server.url) as client:
        wrap(client, provider="openai")
        assert client.post("/chat/completions", json=BODY).json().keys() == {"specclient"}


@pytest.mark.parametrize("model", ['"\\ud800"', "5", "null", '["gpt-4o"]'])
def test_a_model_that_is_no_name_is_the_endpoints_to_refuse(server: ScriptedServer, model: str) -> None:
    server.play(scripted.reply(scripted.completion()))
    with httpx.Client(base_url=server.url) as client:
        wrap(client, provider="openai", strict=True)
        content = b'{"model":%b,"messages":[]}' % model.encode()
        headers = {"content-type": "application/json"}
        answer = client.post("/chat/completions", content=content, headers=headers)
    assert server.requests[0].body == content
    assert answer.json()["choices"] == scripted.completion()["choices"]
    assert (report := last_report()) is not None
    assert report.model in ("?", None)


def test_a_stream_called_json_that_begins_with_blanks_is_passed_on_as_it_comes() -> None:
    first = scripted.data(scripted.chunk("a"))
    transport, taken = blocks_of(b"\n", b" \n", first, scripted.data(scripted.finish()), scripted.DONE)
    with httpx.Client(transport=transport, base_url="http://server/v1") as client:
        wrap(client, provider="openai")
        with client.stream("POST", "/chat/completions", json=BODY | {"stream": True}) as answer:
            assert taken == [b"\n", b" \n", first]
            assert json.loads(answer.read().split(b"data: ")[2])["specclient"]


def test_a_try_again_that_fails_is_still_one_call(server: ScriptedServer) -> None:
    """The refusal came in a 200 that was read as a whole: the SDK saw nothing of it, and tries again."""
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    refusal = {"error": {"message": "prediction is not supported", "param": "prediction", "code": 400}}
    server.play(
        scripted.reply(refusal),
        scripted.error(503, "busy", {"retry-after-ms": "1"}),
        scripted.reply(scripted.completion()),
    )
    with openai.OpenAI(api_key="k", base_url=server.url, max_retries=1) as client:
        facts = {"prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}
        wrap(client, provider="openai", overrides=facts)
        answer = client.chat.completions.create(**BODY, prediction={"type": "content", "content": "k"})
    assert [attempt["status"] for attempt in answer.specclient["attempts"]] == [200, 503, 200]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "figure", ["1e400", "NaN", "-1", "true", '"\\ud800"', "9" * 400, "[]", "{}", '"x"', "2.5"]
)
def test_nonsense_for_figures_and_names_is_no_figure(
    server: ScriptedServer, figure: str, traced: bool
) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="no OpenTelemetry SDK")
    exporter = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    usage = ",".join(f'"{name}":{figure}' for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    details = f'"completion_tokens_details":{{"accepted_prediction_tokens":{figure}}}'
    body = (
        f'{{"id":{figure},"model":{figure},"service_tier":{figure},"system_fingerprint":{figure},'
        f'"choices":[{{"index":{figure},"finish_reason":{figure},"message":{{"content":{figure}}}}}],'
        f'"usage":{{{usage},{details}}},"timings":{{"prompt_ms":{figure},"predicted_n":{figure}}}}}'
    )
    server.play(scripted.reply(body.encode(), headers={"content-type": "application/json"}))
    spans, provider = exporter.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(spans))
    options = TracingOptions(tracer_provider=provider) if traced else TracingOptions()
    with httpx.Client(base_url=server.url) as client:
        wrap(client, provider="llama_cpp", tracing=options)
        answer = client.post("/chat/completions", json=BODY).content
    at = answer.index(b',"specclient"')
    assert answer[:at] + b"}" == body.encode()
    assert (report := last_report()) is not None
    assert report.usage.completion is None or report.usage.completion >= 0
    assert [span.name for span in spans.get_finished_spans()].count("chat gpt-4o") == traced


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("unfinished", [b"", b'data: {"half'])
@pytest.mark.parametrize("last", [scripted.finish(), scripted.usage_chunk()])
def test_what_came_before_a_break_is_not_lost(
    server: ScriptedServer, is_async: bool, unfinished: bytes, last: dict[str, Any]
) -> None:
    """The finish reason and the usage wait for the report; where the stream breaks off, they go first."""
    came = scripted.data(scripted.chunk("a")) + scripted.data(last) + unfinished
    server.play(scripted.stream(came, Close(), terminate=False))
    got = bytearray()

    def sync() -> None:
        with httpx.Client(base_url=server.url) as client:
            wrap(client, provider="openai_compatible")
            with client.stream("POST", "/chat/completions", json=BODY | {"stream": True}) as answer:
                for block in answer.iter_bytes():
                    got.extend(block)

    async def asynchronous() -> None:
        async with httpx.AsyncClient(base_url=server.url) as client:
            wrap(client, provider="openai_compatible")
            async with client.stream("POST", "/chat/completions", json=BODY | {"stream": True}) as answer:
                async for block in answer.aiter_bytes():
                    got.extend(block)

    with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read") as failed:
        asyncio.run(asynchronous()) if is_async else sync()
    assert bytes(got) == came
    assert failed.value.request.url == f"{server.url}/chat/completions"
