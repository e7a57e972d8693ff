"""What a client may send by mistake, and what a target may answer that no client could read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import server as scripted
from tests.gateway.conftest import Running
from tests.server import ScriptedServer

SLIPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "null": ({"messages": None}, "messages", "not null"),
    "text": ({"messages": "hi"}, "messages", "not str"),
    "a-text": ({"messages": ["hi"]}, "messages", "messages[0] is an object"),
    "null-content": (
        {"messages": [{"role": "user", "content": None}]},
        "messages",
        "messages[0].content is null",
    ),
    "n": ({"n": 0}, "n", "n is a whole number of at least 1, not 0"),
}


@pytest.mark.parametrize(("body", "param", "said"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_told_in_one_sentence_and_not_passed_on(
    gateway: Running, upstream: ScriptedServer, body: dict[str, Any], param: str, said: str
) -> None:
    answer = gateway.post(**body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert said in answer.json()["error"]["message"]
    assert not upstream.requests


def test_a_request_without_messages_is_none(gateway: Running) -> None:
    answer = gateway.client.post("/chat/completions", json={"model": "plain"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")
    assert gateway.client.post("/completions", json={"prompt": "x", "n": "2"}).json()["error"]["param"] == "n"


@pytest.mark.parametrize("status", [300, 304, 307, 600, 999])
@pytest.mark.parametrize("stream", [False, True])
def test_a_status_that_is_no_error_of_http_becomes_a_502(
    gateway: Running, upstream: ScriptedServer, status: int, stream: bool
) -> None:
    upstream.play(scripted.raw(scripted.head(status, {"content-length": "0", "location": "http://[x"})))
    answer = gateway.post(model="plain", stream=stream)
    assert answer.status_code == 502
    assert str(status) in answer.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_json_cannot_say_is_written_so_that_it_can(
    gateway: Running, upstream: ScriptedServer, stream: bool
) -> None:
    odd = b'{"text":"a\\ud800","number":NaN,"list":[1.5,-Infinity]}'
    if stream:
        event = scripted.data(scripted.chunk("Hi")).replace(b'"m"', b'"m","odd":' + odd)
        upstream.play(scripted.stream(event, scripted.data(scripted.finish()), scripted.DONE))
    else:
        body = json.dumps(scripted.completion("Hi")).encode().replace(b'"m"', b'"m","odd":' + odd)
        upstream.play(scripted.reply(body, headers={"content-type": "application/json"}))
    content = gateway.post(model="plain", stream=stream).content
    line = content.split(b"\n")[0].removeprefix(b"data: ").decode()

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(line, parse_constant=refuse)["odd"] == {
        "text": "a\ud800",
        "number": None,
        "list": [1.5, None],
    }
