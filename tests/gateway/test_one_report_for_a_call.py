"""A call through our own gateway has one report, its own client's; and the gateway is recognised."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import specclient
from specclient.core.sse import SSEReader
from specclient.middleware import report_of, wrapping
from specclient.middleware.context import predicting
from specclient.report import Report
from tests import server as scripted
from tests.gateway.conftest import Running
from tests.server import ScriptedServer

KNOWN = "def bar():\n    return 1\n"
ASK = [{"role": "user", "content": "x"}]
Caller = Callable[[], tuple[Report, dict[str, Any]]]


@pytest.fixture(autouse=True)
def nothing_learnt() -> Iterator[None]:
    wrapping._learned.clear()
    yield
    wrapping._learned.clear()


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def target(gateway: Running, upstream: ScriptedServer, stream: bool) -> Running:
    whole = scripted.reply(scripted.completion("Hello"))
    parts = scripted.sse(scripted.role(), scripted.chunk("Hello"), scripted.finish(), scripted.usage_chunk())
    upstream.respond = lambda _: parts if stream else whole
    return gateway


def wrapped(url: str, stream: bool, **options: Any) -> Caller:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    sdk = wrapping.wrap(openai.OpenAI(base_url=url, api_key="k", max_retries=0), **options)

    def call() -> tuple[Report, dict[str, Any]]:
        with predicting(KNOWN) as block:
            answer = sdk.chat.completions.create(model="predicting", messages=ASK, stream=stream)
            last = list(answer)[-1] if stream else answer
        report = report_of(last)
        assert report is not None
        assert report == block.reports[-1] == specclient.last_report()
        assert report == (report_of(answer) or report)
        return report, last.model_extra

    return call


def wrapped_async(url: str, stream: bool, **options: Any) -> Caller:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

    async def ask() -> tuple[Report, dict[str, Any]]:
        async with wrapping.wrap(
            openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0), **options
        ) as sdk:
            with predicting(KNOWN) as block:
                answer = await sdk.chat.completions.create(model="predicting", messages=ASK, stream=stream)
                last = [chunk async for chunk in answer][-1] if stream else answer
        report = report_of(last)
        assert report is not None
        assert report == block.reports[-1]
        return report, last.model_extra

    def call() -> tuple[Report, dict[str, Any]]:
        with asyncio.Runner() as runner:
            return runner.run(ask())

    return call


def own(url: str, stream: bool, **options: Any) -> Caller:
    client = specclient.Client(base_url=url, model="predicting", max_retries=0, **options)

    def call() -> tuple[Report, dict[str, Any]]:
        answer = client.chat.completions.create(messages=ASK, prediction=KNOWN, stream=stream)
        report = list(answer)[-1].specclient if stream else answer.specclient
        return report, {}

    return call


@pytest.mark.parametrize("door", [wrapped, wrapped_async, own])
def test_the_report_is_the_clients_own(target: Running, stream: bool, door: Callable[..., Caller]) -> None:
    report, extra = door(target.url, stream, provider="specclient")()
    assert (report.provider, report.prediction.outcome) == ("specclient", "forwarded")
    assert report.target != "predicting"
    assert [attempt.provider for attempt in report.attempts] == ["specclient"]
    if extra:
        assert Report.model_validate(extra["specclient"]) == report
    if extra and not stream:  # a stream's last chunk holds the usage, which nobody here asked to see
        assert extra["specclient_gateway"]["target"] == "predicting"


@pytest.mark.parametrize("door", [wrapped, wrapped_async, own])
def test_the_gateway_is_recognised_after_its_first_answer(
    target: Running, stream: bool, door: Callable[..., Caller], upstream: ScriptedServer
) -> None:
    call = door(target.url, stream)
    first, _ = call()
    assert (first.provider, first.prediction.outcome) == ("openai_compatible", "withheld")
    assert "name it as provider" in first.prediction.reasons[0].text
    second, _ = call()
    assert (second.provider, second.prediction.outcome) == ("specclient", "forwarded")
    assert "prediction" in upstream.requests[-1].json


def test_another_server_at_the_same_address_is_not_taken_for_it(server: ScriptedServer) -> None:
    signed = scripted.reply(scripted.completion(), headers={"server": "specclient/1.0"})
    server.play(signed, scripted.reply(scripted.completion()), scripted.reply(scripted.completion()))
    outcomes = []
    with httpx.Client() as client:
        wrapping.wrap(client)
        for _ in range(3):
            body = {"model": "m", "messages": ASK, "prediction": {"type": "content", "content": KNOWN}}
            answer = client.post(f"{server.url}/chat/completions", json=body)
            outcomes.append(answer.json()["specclient"]["prediction"]["outcome"])
    assert outcomes == ["withheld", "forwarded", "withheld"]


def test_a_named_provider_stays_what_it_was_named(target: Running, stream: bool) -> None:
    call = wrapped(target.url, stream, provider="vllm")
    call()
    report, _ = call()
    assert report.provider == "vllm"


def test_a_stream_keeps_the_gateways_report_where_the_usage_was_asked_for(
    gateway: Running, upstream: ScriptedServer
) -> None:
    upstream.play(scripted.sse(scripted.chunk("Hello"), scripted.finish(), scripted.usage_chunk()))
    body = {"model": "plain", "messages": ASK, "stream": True, "stream_options": {"include_usage": True}}
    with httpx.Client() as client:
        wrapping.wrap(client, provider="specclient")
        content = client.post(f"{gateway.url}/chat/completions", json=body).content
    last = [json.loads(data) for _, data in SSEReader().feed(content) if data != b"[DONE]"][-1]
    assert last["specclient"]["provider"] == "specclient"
    assert last["specclient_gateway"]["target"] == "plain"


@pytest.mark.parametrize("content", [b'{"a": 1.50, "specclient" : {"b":  1}}', b'{"specclient":{"b":  1}}'])
def test_what_else_is_in_the_answer_stays_as_it_came(server: ScriptedServer, content: bytes) -> None:
    server.play(scripted.reply(content, headers={"content-type": "application/json"}))
    with httpx.Client() as client:
        wrapping.wrap(client, provider="specclient")
        answer = client.post(f"{server.url}/chat/completions", json={"model": "m", "messages": ASK})
    kept = content.replace(b'"specclient"', b'"specclient_gateway"')
    assert answer.content.startswith(kept[:-1] + b',"specclient":{')


def test_the_same_key_further_inside_stays_there(server: ScriptedServer) -> None:
    body = scripted.completion(metadata={"specclient": 1}, specclient={"target": "far"})
    server.play(scripted.reply(body))
    with httpx.Client() as client:
        wrapping.wrap(client, provider="specclient")
        answer = client.post(f"{server.url}/chat/completions", json={"model": "m", "messages": ASK}).json()
    assert answer["metadata"] == {"specclient": 1}
    assert answer["specclient_gateway"] == {"target": "far"}
    assert json.dumps(answer["specclient"]["provider"]) == '"specclient"'
