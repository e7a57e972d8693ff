"""Frameworks that the suite's own environment has no room for: see CONTRIBUTING on how these are run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from specclient.middleware import predicting, wrap
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.test_frameworks import tool_call

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.filterwarnings("ignore"),  # the frameworks' own, of many kinds
]

KNOWN = "def bar(): pass"
TAKES = {"prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}
MESSAGES = [{"role": "user", "content": "x"}]
HELLO = scripted.reply(scripted.completion("Hello"))
STREAM = scripted.sse(
    scripted.role(), scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish(), scripted.usage_chunk()
)


class Point(BaseModel):
    """A point."""

    x: int


def wrapped(made: Any) -> Any:
    return wrap(made, provider="openai", overrides=TAKES)


def sdk(server: ScriptedServer, kind: Any = openai.OpenAI) -> Any:
    return wrapped(kind(api_key="k", base_url=server.url, max_retries=0))


class Seen:
    """What went out and what came of it."""

    def __init__(self, server: ScriptedServer, block: Any) -> None:
        self.server, self.block = server, block

    def check(self, *outcomes: str) -> None:
        sent = [request.json.get("prediction") for request in self.server.requests]
        expected = {"type": "content", "content": KNOWN}
        assert sent == [expected if outcome == "forwarded" else None for outcome in outcomes]
        assert [report.prediction.outcome for report in self.block.reports] == list(outcomes)


@pytest.fixture
def seen(server: ScriptedServer) -> Iterator[Seen]:
    with predicting(KNOWN) as block:
        yield Seen(server, block)


# OpenAI's agents ----------------------------------------------------------------------------------


def test_openai_agents(seen: Seen) -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    agents.set_tracing_disabled(True)

    @agents.function_tool
    def double(a: int) -> int:
        """Twice a."""
        return a * 2

    async def main() -> list[Any]:
        async with sdk(seen.server, openai.AsyncOpenAI) as client:
            model = agents.OpenAIChatCompletionsModel(model="gpt-4o", openai_client=client)
            plain, typed, tooled = (
                agents.Agent(name="a", model=model, **options)
                for options in ({}, {"output_type": Point}, {"tools": [double]})
            )
            results = [(await agents.Runner.run(agent, "x")).final_output for agent in (plain, typed, tooled)]
            streamed = agents.Runner.run_streamed(plain, "x")
            async for _ in streamed.stream_events():
                pass
            return [*results, streamed.final_output]

    seen.server.play(
        HELLO,
        scripted.reply(scripted.completion('{"x": 7}')),
        scripted.reply(tool_call("double", '{"a": 3}')),
        scripted.reply(scripted.completion("6")),
        STREAM,
    )
    assert asyncio.run(main()) == ["Hello", Point(x=7), "6", "Hello"]
    seen.check("forwarded", "forwarded", "withheld", "withheld", "forwarded")


# LlamaIndex ---------------------------------------------------------------------------------------


def test_llama_index(seen: Seen) -> None:
    llms = pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is not installed")
    from llama_index.core.tools import FunctionTool

    def double(a: int) -> int:
        """Twice a."""
        return a * 2

    http, ahttp = wrapped(httpx.Client()), wrapped(httpx.AsyncClient())
    llm = llms.OpenAI(
        model="gpt-4o",
        api_key="k",
        api_base=seen.server.url,
        http_client=http,
        async_http_client=ahttp,
        max_retries=0,
    )

    async def main() -> list[str]:
        async with ahttp:
            plain = (await llm.acomplete("x")).text
            return [plain, [part async for part in await llm.astream_complete("x")][-1].text]

    seen.server.play(HELLO, STREAM, scripted.reply(scripted.completion('{"x": 7}')))
    with http:
        assert llm.complete("x").text == "Hello"
        assert list(llm.stream_complete("x"))[-1].text == "Hello"
        assert llm.as_structured_llm(Point).complete("x").raw == Point(x=7)
        seen.server.play(scripted.reply(tool_call("double", '{"a": 3}')), HELLO, STREAM)
        assert str(llm.predict_and_call([FunctionTool.from_defaults(double)], "x")) == "6"
        assert asyncio.run(main()) == ["Hello", "Hello"]
    seen.check("forwarded", "forwarded", "forwarded", "withheld", "forwarded", "forwarded")


# litellm ------------------------------------------------------------------------------------------


def text(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_litellm(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm", reason="litellm is not installed")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    asked = {"model": "openai/gpt-4o", "messages": MESSAGES}

    async def main() -> list[str]:
        async with sdk(seen.server, openai.AsyncOpenAI) as client:
            plain = await litellm.acompletion(**asked, client=client)
            stream = await litellm.acompletion(**asked, client=client, stream=True)
            return [plain.choices[0].message.content, text([chunk async for chunk in stream])]

    seen.server.play(HELLO, STREAM, scripted.reply(tool_call("f", "{}")), HELLO, STREAM)
    with contextlib.closing(sdk(seen.server)) as client:
        assert litellm.completion(**asked, client=client).choices[0].message.content == "Hello"
        assert text(list(litellm.completion(**asked, client=client, stream=True))) == "Hello"
        called = litellm.completion(**asked, client=client, tools=tools).choices[0].message
        assert called.tool_calls[0].function.name == "f"
    assert asyncio.run(main()) == ["Hello", "Hello"]
    seen.check("forwarded", "forwarded", "withheld", "forwarded", "forwarded")


# DSPy ---------------------------------------------------------------------------------------------


def test_dspy(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """DSPy copies what it is given, and clients cannot be copied: so a model class of one's own."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    dspy = pytest.importorskip("dspy", reason="dspy is not installed")
    client = sdk(seen.server)

    class Wrapped(dspy.BaseLM):
        def forward(self, prompt: str | None = None, messages: Any = None, **options: Any) -> Any:
            asked = messages or [{"role": "user", "content": prompt}]
            return client.chat.completions.create(model=self.model, messages=asked)

    answer = "[[ ## answer ## ]]\nHello\n\n[[ ## completed ## ]]"
    seen.server.play(scripted.reply(scripted.completion(answer)))
    with client, dspy.context(lm=Wrapped(model="gpt-4o")):
        assert dspy.Predict("question -> answer")(question="x").answer == "Hello"
    seen.check("forwarded")
