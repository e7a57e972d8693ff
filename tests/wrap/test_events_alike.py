"""An event that is like one before it is passed on unread, and nothing else is."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from specclient.middleware import wrap
from specclient.middleware.alike import TRIES, Alike
from tests import server as scripted
from tests.server import ScriptedServer

HIDDEN = re.compile(rb',\s*"usage"\s*:\s*null')


def event(text: str, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    value = {"id": "c", "choices": [choice | more], "usage": None}
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


@pytest.fixture
def alike() -> Alike:
    found = Alike()
    found.learn(raw := event("one"), raw)
    return found


@pytest.mark.parametrize("text", ["two", "", " }{", "é 🙂", "\\\n", "x" * 10_000, "a:1,b"])
def test_only_the_text_differs(alike: Alike, text: str) -> None:
    assert alike.shown(event(text)) == event(text)


@pytest.mark.parametrize(
    "raw",
    [
        event('a "quoted" word'),
        event("ends in a backslash \\"),
        event("x", finish_reason="stop"),
        event("x").replace(b'"usage":null', b'"usage":{"total_tokens":1}'),
        event('x"},"finish_reason":"stop"}],"usage":{"a":"'),
        event("x").replace(b'"delta":{', b'"delta":{"role":"assistant",'),
        event("x")[:-2],
        b'data: {"id":"c"}\n\n',
        b"data: [DONE]\n\n",
        b"",
        event("one").replace(b'one"', b""),
    ],
)
def test_anything_else_is_read(alike: Alike, raw: bytes) -> None:
    assert alike.shown(raw) is None


def test_what_is_hidden_stays_hidden() -> None:
    alike = Alike()
    raw = event("one")
    alike.learn(raw, HIDDEN.sub(b"", raw))
    for text in ("two", "three"):
        assert alike.shown(event(text)) == HIDDEN.sub(b"", event(text))


def test_events_that_all_differ_are_compared_no_more() -> None:
    alike = Alike()
    for number in range(2 * TRIES):
        raw = event("x", obfuscation=str(number))
        assert alike.shown(raw) is None
        alike.learn(raw, raw)
    last = event("x", obfuscation=str(TRIES - 1))
    assert alike.shown(last) == last
    assert alike.shown(event("x", obfuscation=str(2 * TRIES - 1))) is None


def test_an_event_without_a_text_teaches_nothing(alike: Alike) -> None:
    odd = b'data: {"choices":[{"delta":{"content":["x"]}}]}\n\n'
    alike.learn(odd, odd)
    assert alike.shown(odd) is None
    assert alike.shown(event("two")) is None


@pytest.mark.parametrize("asked", [True, False], ids=["asked for", "not asked for"])
def test_a_stream_of_events_alike_arrives_whole(server: ScriptedServer, asked: bool) -> None:
    words = [f"word {number} " for number in range(20)]
    events = [scripted.data(scripted.chunk(word)) for word in words]
    server.play(scripted.stream(*events, scripted.data(scripted.finish()), scripted.DONE))
    body = {"model": "m", "messages": []} | ({"stream": True} if asked else {})
    with httpx.Client() as client:
        wrap(client, provider="openai_compatible")
        got = client.post(f"{server.url}/chat/completions", json=body).content
    assert got.startswith(b"".join(events))
    assert b'"specclient":' in got
