"""Everything else of the openai SDK works as it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specclient.middleware import last_report, report_of, wrap
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.sdks import KINDS, MESSAGES, Sdk

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
pydantic = pytest.importorskip("pydantic")

pytestmark = pytest.mark.sdk

ARGUMENTS: dict[str, Any] = {"model": "gpt-4o", "messages": MESSAGES}
KNOWN = {"type": "content", "content": "def bar(): pass"}


@pytest.fixture
def client(open_sdk: Callable[..., Sdk]) -> Any:
    sdk = open_sdk("openai")
    return wrap(sdk.client, provider="openai", overrides=KINDS["openai"].facts)


def test_raw_responses(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion("Hello"), headers={"x-ratelimit-remaining": "9"}))
    raw = client.chat.completions.with_raw_response.create(**ARGUMENTS, prediction=KNOWN)
    assert raw.headers["x-ratelimit-remaining"] == "9"
    assert raw.elapsed.total_seconds() > 0
    assert raw.parse().choices[0].message.content == "Hello"
    report = report_of(raw)
    assert report is not None
    assert report.prediction.outcome == "forwarded"


def test_streamed_raw_responses(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.sse(scripted.chunk("Hello"), scripted.finish()))
    streamed = client.chat.completions.with_streaming_response.create(**ARGUMENTS, stream=True)
    with streamed as raw:
        lines = [line for line in raw.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert report_of(raw) is not None


def test_a_raw_stream_parsed(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.sse(scripted.chunk("Hello"), scripted.finish()))
    raw = client.chat.completions.with_raw_response.create(**ARGUMENTS, stream=True)
    chunks = list(raw.parse())
    assert chunks[0].choices[0].delta.content == "Hello"
    assert report_of(raw) == last_report()


def test_parse(client: Any, server: ScriptedServer) -> None:
    class Point(pydantic.BaseModel):
        x: int

    server.play(scripted.reply(scripted.completion('{"x": 7}')))
    answer = client.chat.completions.parse(**ARGUMENTS, response_format=Point)
    assert answer.choices[0].message.parsed == Point(x=7)
    assert report_of(answer) is not None


def test_the_stream_helper(client: Any, server: ScriptedServer) -> None:
    server.play(
        scripted.sse(
            scripted.role(),
            scripted.chunk("Hel"),
            scripted.chunk("lo"),
            scripted.finish(),
            scripted.usage_chunk(),
        )
    )
    with client.chat.completions.stream(**ARGUMENTS, prediction=KNOWN) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds.count("content.done") == 1
    assert final.choices[0].message.content == "Hello"
    assert server.requests[0].json["prediction"] == KNOWN


def test_responses_embeddings_and_models_are_not_touched(client: Any, server: ScriptedServer) -> None:
    answer = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    server.play(
        scripted.reply(answer),
        scripted.reply(
            {"object": "list", "data": [], "model": "e", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        ),
        scripted.reply({"object": "list", "data": []}),
    )
    assert client.responses.create(model="gpt-4o", input="x", extra_body={"prediction": 1}).id == "resp_1"
    assert server.requests[0].json["prediction"] == 1
    with pytest.raises(ValueError, match="No embedding data"):
        client.embeddings.create(model="e", input="x")
    assert client.models.list().data == []


def test_text_completions(open_sdk: Callable[..., Sdk], server: ScriptedServer) -> None:
    client = wrap(open_sdk("openai").client, provider="openai")
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    server.play(scripted.reply(body | {"choices": [{"index": 0, "text": "Hello", "finish_reason": "stop"}]}))
    answer = client.completions.create(
        model="gpt-3.5-turbo-instruct", prompt="x", extra_body={"prediction": "y"}
    )
    assert answer.choices[0].text == "Hello"
    report = report_of(answer)
    assert report is not None
    assert report.prediction.outcome == "withheld"


def test_azure_is_known_by_its_address(server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion()))
    with openai.AzureOpenAI(api_key="k", azure_endpoint=server.origin, api_version="2024-10-21") as client:
        wrap(client, provider="azure")
        answer = client.chat.completions.create(**ARGUMENTS, prediction=KNOWN)
    report = report_of(answer)
    assert report is not None
    assert report.prediction.outcome == "withheld"
    assert report.prediction.reasons[0].code == "api_version"
    assert server.requests[0].path == "/openai/deployments/gpt-4o/chat/completions"
    assert server.requests[0].query == {"api-version": "2024-10-21"}


def test_copies_of_the_client_are_wrapped_too(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion()))
    answer = client.with_options(timeout=3).chat.completions.create(**ARGUMENTS)
    assert report_of(answer) is not None


def test_the_clients_own_legacy_http_client(server: ScriptedServer) -> None:
    import httpx

    server.play(scripted.reply(scripted.completion()))
    with httpx.Client() as legacy:
        made: Any = openai.OpenAI(api_key="k", base_url=server.url, http_client=legacy)
        wrap(made, provider="openai")
        assert report_of(made.chat.completions.create(**ARGUMENTS)) is not None


def test_extra_body_serves_sdks_without_the_parameter(
    open_sdk: Callable[..., Sdk], server: ScriptedServer
) -> None:
    sdk = open_sdk("groq")
    wrap(sdk.client, provider="fireworks", overrides=KINDS["fireworks"].facts)
    server.play(scripted.reply(scripted.completion()))
    answer = sdk.create(extra_body={"prediction": KNOWN})
    report = report_of(answer)
    assert report is not None
    assert report.prediction.outcome == "forwarded"
