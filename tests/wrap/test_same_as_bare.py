"""A wrapped SDK and a bare one see the same answer, whatever the answer is like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from specclient.middleware import wrap
from tests import server as scripted
from tests.server import Answer, Close, ScriptedServer
from tests.wrap.sdks import KINDS, Sdk, text_of

pytestmark = pytest.mark.sdk

A, B, END = scripted.chunk("Hé 🙂 "), scripted.chunk("\u2028lo"), scripted.finish()
WHOLE = scripted.data(A) + scripted.data(B) + scripted.data(END) + scripted.DONE


def cut(size: int) -> list[bytes]:
    return [WHOLE[at : at + size] for at in range(0, len(WHOLE), size)]


def over_lines(value: Any) -> bytes:
    """One event whose JSON is spread over several data lines."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return "".join(f"data: {line}\n" for line in text.split("\n")).encode() + b"\n"


STREAMS: dict[str, Answer] = {
    "whole": scripted.stream(WHOLE),
    "byte by byte": scripted.stream(*cut(1)),
    "in sevens": scripted.stream(*cut(7)),
    "CRLF": scripted.stream(WHOLE.replace(b"\n", b"\r\n")),
    "comments": scripted.stream(b": OPENROUTER PROCESSING\n\n", scripted.data(A), b": hi\n\n", scripted.DONE),
    "comment in a data line": scripted.stream(b"data: : hi\n\n", WHOLE),
    "over several lines": scripted.stream(over_lines(A), over_lines(B), over_lines(END), scripted.DONE),
    "no blank after the colon": scripted.stream(WHOLE.replace(b"data: ", b"data:")),
    "retry and id": scripted.stream(b"retry: 3000\n\n", b"id: 1\n", WHOLE),
    "named events": scripted.stream(b"event: message\n" + WHOLE),
    "empty choices first": scripted.sse({**A, "choices": [], "prompt_filter_results": []}, A, B, END),
    "usage last": scripted.sse(A, B, END, scripted.usage_chunk()),
    "usage twice": scripted.sse(A, scripted.usage_chunk(), B, END, scripted.usage_chunk()),
    "usage with the finish reason": scripted.sse(A, B, END | {"usage": {"total_tokens": 7}}),
    "content with the finish reason": scripted.sse(A, scripted.chunk("lo", finish_reason="stop")),
    "content after the finish reason": scripted.sse(A, END, B),
    "error object": scripted.sse(A, {"error": {"message": "overloaded", "code": 529}}),
    "error object first": scripted.sse({"error": {"message": "overloaded", "code": 529}}),
    "no done": scripted.sse(A, B, END, done=False),
    "no end": scripted.sse(A, B, done=False),
    "half an event": scripted.stream(scripted.data(A), b'data: {"id": "x", "cho'),
    "nothing": scripted.stream(),
    "only done": scripted.stream(scripted.DONE),
    "broken": scripted.stream(scripted.data(A), Close(), terminate=False),
    "reset": scripted.stream(scripted.data(A), Close(reset=True), terminate=False),
    "not JSON": scripted.stream(b"data: nonsense\n\n", WHOLE),
    "gzip": scripted.sse(A, B, END, gzip=True),
    "closed instead of chunked": scripted.sse(A, B, END, framing="close"),
    "more after done": scripted.stream(WHOLE, scripted.data(A)),
    "a page": scripted.reply(b"<html>busy</html>", 502),
    "a page with 200": scripted.reply(b"<html>busy</html>"),
    "an error": scripted.error(429, "slow down", {"retry-after": "7"}),
}
PLAIN: dict[str, Answer] = {
    "whole": scripted.reply(scripted.completion("Hé 🙂 \u2028lo")),
    "gzip": scripted.reply(scripted.completion("Hello"), gzip=True),
    "unknown fields": scripted.reply(scripted.completion("Hello", sources=[1], x_timing={"a": 1})),
    "no choices": scripted.reply({"id": "x", "object": "chat.completion", "choices": []}),
    "an error in a 200": scripted.reply({"error": {"message": "rate limit", "code": 429}, "choices": None}),
    "empty": scripted.reply(b"", headers={"content-type": "application/json"}),
    "half": scripted.reply(b'{"id": ', headers={"content-type": "application/json"}),
    "a list": scripted.reply([1, 2]),
    "a page": scripted.reply(b"<html>busy</html>", 502),
    "an error": scripted.error(400, "bad", param="temperature"),
    "no answer": scripted.raw(Close()),
    "redirect": scripted.reply(b"", 307, {"location": "/elsewhere"}),
    "no content": scripted.raw(scripted.head(204, {})),
}


def outcome(sdk: Sdk, server: ScriptedServer, answer: Answer, *, stream: bool) -> Any:
    """What the caller sees: the text and the finish reasons, or the error."""
    server.play(answer)
    try:
        if stream:
            chunks = sdk.stream()
            return text_of(chunks), [_dump(chunk) for chunk in chunks]
        made = sdk.create()
        return _dump(made)
    except Exception as error:
        name = type(error).__name__
        if name == "ResponseValidationError":  # quotes the body, in which the report is
            return name
        return name, str(error), str(getattr(error, "body", None))


def _dump(value: Any) -> Any:
    if not hasattr(value, "model_dump"):
        return value
    dumped = value.model_dump(mode="json")
    dumped.pop("specclient", None)
    return dumped


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(
    scope="module",
    params=[(name, is_async) for name in ("openai", "groq", "mistralai") for is_async in (False, True)],
    ids=lambda pair: f"{pair[0]}-{'async' if pair[1] else 'sync'}",
)
def pair(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[tuple[Sdk, Sdk]]:
    """A bare client and a wrapped one."""
    name, is_async = request.param
    kind = KINDS[name]
    bare, wrapped = (Sdk(kind, server.origin, is_async=is_async) for _ in range(2))
    wrap(wrapped.client, provider=kind.provider, overrides={"opt_ins": []})
    yield bare, wrapped
    bare.close()
    wrapped.close()


@pytest.mark.parametrize("name", STREAMS)
def test_streams(pair: tuple[Sdk, Sdk], server: ScriptedServer, name: str) -> None:
    bare, wrapped = (outcome(sdk, server, STREAMS[name], stream=True) for sdk in pair)
    assert wrapped == bare


@pytest.mark.parametrize("name", PLAIN)
def test_plain(pair: tuple[Sdk, Sdk], server: ScriptedServer, name: str) -> None:
    bare, wrapped = (outcome(sdk, server, PLAIN[name], stream=False) for sdk in pair)
    assert wrapped == bare
