"""Real frameworks over a wrapped client: they work as before, and the prediction reaches the endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from specclient.middleware import last_report, predicting, report_of, wrap
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.sdks import KINDS, Sdk

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the frameworks' own
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]

KNOWN = "def bar(): pass"
FACTS = KINDS["openai"].facts


class Point(BaseModel):
    x: int


def tool_call(name: str, arguments: str) -> dict[str, Any]:
    body: dict[str, Any] = scripted.completion("")
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    body["choices"][0] |= {
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
    return body


def sent(server: ScriptedServer, index: int = -1) -> Any:
    return server.requests[index].json.get("prediction")


# langchain ----------------------------------------------------------------------------------------


@pytest.fixture
def chat(open_sdk: Callable[..., Sdk], server: ScriptedServer) -> Any:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    sdk, other = open_sdk("openai"), open_sdk("openai", is_async=True)
    for made in (sdk, other):
        wrap(made.client, provider="openai", overrides=FACTS)
    return langchain.ChatOpenAI(
        model="gpt-4o",
        api_key="k",
        base_url=server.url,
        max_retries=0,
        http_client=sdk.client._client,
        http_async_client=other.client._client,
    )


def test_langchain(chat: Any, server: ScriptedServer) -> None:
    server.play(
        scripted.reply(scripted.completion("Hello")),
        scripted.sse(scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish(), scripted.usage_chunk()),
    )
    with predicting(KNOWN):
        assert chat.invoke("x").content == "Hello"
        assert sent(server)["content"] == KNOWN
        assert "".join(str(part.content) for part in chat.stream("x")) == "Hello"
    report = last_report()
    assert report is not None
    assert report.prediction.outcome == "forwarded"


def test_langchain_with_the_prediction_as_an_argument(chat: Any, server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion("Hello")))
    chat.invoke("x", prediction={"type": "content", "content": KNOWN})
    assert sent(server)["content"] == KNOWN


def test_langchain_tools_keep_the_prediction_out(chat: Any, server: ScriptedServer) -> None:
    server.play(scripted.reply(tool_call("Point", '{"x": 7}')))
    with predicting(KNOWN):
        structured = chat.with_structured_output(Point, method="function_calling")
        assert structured.invoke("x") == Point(x=7)
    assert sent(server) is None
    assert server.requests[0].json["tools"]


# instructor ---------------------------------------------------------------------------------------


def test_instructor(open_sdk: Callable[..., Sdk], server: ScriptedServer) -> None:
    instructor = pytest.importorskip("instructor", reason="instructor is not installed")
    sdk = open_sdk("openai")
    wrap(sdk.client, provider="openai", overrides=FACTS)
    server.play(
        scripted.reply(scripted.completion('{"x": 7}')), scripted.reply(tool_call("Point", '{"x": 8}'))
    )
    messages = [{"role": "user", "content": "x"}]
    with predicting(KNOWN):
        by_json = instructor.from_openai(sdk.client, mode=instructor.Mode.JSON)
        assert by_json.chat.completions.create(model="gpt-4o", messages=messages, response_model=Point).x == 7
        assert sent(server)["content"] == KNOWN
        by_tools = instructor.from_openai(sdk.client, mode=instructor.Mode.TOOLS)
        assert (
            by_tools.chat.completions.create(model="gpt-4o", messages=messages, response_model=Point).x == 8
        )
        assert sent(server) is None
    report = last_report()
    assert report is not None
    assert report.prediction.outcome == "withheld"


# pydantic-ai --------------------------------------------------------------------------------------


@pytest.fixture
def agent(open_sdk: Callable[..., Sdk]) -> tuple[Any, Sdk]:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    sdk = open_sdk("openai", is_async=True)
    wrap(sdk.client, provider="openai", overrides=FACTS)
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=sdk.client))
    return Agent(model), sdk


def test_pydantic_ai(agent: tuple[Any, Sdk], server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion("Hello")))
    made, sdk = agent
    settings = {"openai_prediction": {"type": "content", "content": KNOWN}}
    result = sdk.run(lambda: made.run("x", model_settings=settings))
    assert result.output == "Hello"
    assert sent(server)["content"] == KNOWN


def test_pydantic_ai_streams(agent: tuple[Any, Sdk], server: ScriptedServer) -> None:
    server.play(
        scripted.sse(scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish(), scripted.usage_chunk())
    )
    made, sdk = agent

    async def run() -> tuple[str, Any]:
        with predicting(KNOWN):
            async with made.run_stream("x") as result:
                return await result.get_output(), last_report()

    text, report = sdk.run(run)
    assert text == "Hello"
    assert sent(server)["content"] == KNOWN
    assert report is not None
    assert report.prediction.outcome == "forwarded"


# OpenTelemetry's own instrumentation --------------------------------------------------------------


def test_the_official_instrumentation_and_ours_make_one_chat_span(
    open_sdk: Callable[..., Sdk], server: ScriptedServer
) -> None:
    instrumentation = pytest.importorskip("opentelemetry.instrumentation.genai.openai")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from specclient.tracing import TracingOptions

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = instrumentation.OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        sdk = open_sdk("openai")
        wrap(sdk.client, provider="openai", overrides=FACTS, tracing=TracingOptions(tracer_provider=provider))
        server.play(scripted.reply(scripted.completion("Hello")))
        with predicting(KNOWN):
            assert report_of(sdk.create()) is not None
    finally:
        instrumentor.uninstrument()
    chats = [span for span in exporter.get_finished_spans() if span.name.startswith("chat")]
    assert len(chats) == 1
    assert chats[0].attributes["specclient.prediction.sent"] is True
