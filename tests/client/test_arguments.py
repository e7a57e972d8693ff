"""Slips in the arguments: one sentence each, and nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest

import specclient
from tests.client.fake_engine import FakeEngine
from tests.doors import MESSAGES, SyncDoor
from tests.server import completion, reply

USER = {"role": "user", "content": "x"}

SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "no-messages": ({"messages": None}, "messages is a list of objects with role and content, not null"),
    "text": ({"messages": "hi"}, "not str"),
    "one-message": ({"messages": USER}, "not dict"),
    "a-number": ({"messages": 5}, "not int"),
    "null-message": (
        {"messages": [USER, None]},
        r"messages\[1\] is an object with role and content, not null",
    ),
    "text-message": ({"messages": ["hi"]}, r"messages\[0\] is an object"),
    "null-content": (
        {"messages": [{"role": "user", "content": None}]},
        r"messages\[0\]\.content is null; a message of role user has text or parts",
    ),
    "null-tool": ({"messages": [{"role": "tool", "content": None}]}, "role tool"),
    "n-0": ({"n": 0}, "n is a whole number of at least 1, not 0"),
    "n-text": ({"n": "2"}, "not '2'"),
    "n-true": ({"n": True}, "not True"),
    "model": ({"model": 5}, "model is the name of one, a string, not int"),
    "timeout": ({"timeout": -1}, r"timeout\.connect: input should be greater than 0"),
    "timeout-true": ({"timeout": True}, "a number of seconds"),
    "retries": ({"max_retries": -1}, "max_retries is a whole number of at least 0, not -1"),
    "body": ({"extra_body": 5}, "extra_body is an object"),
    "headers": ({"extra_headers": [1]}, "extra_headers is an object"),
    "header": ({"extra_headers": {"x-a": 5}}, "header x-a is text, not int"),
    "query": ({"extra_query": "a=b"}, "extra_query is an object"),
    "prediction": ({"prediction": {"content": 5}}, "content is text or a list of parts, not int"),
}


@pytest.mark.parametrize(("given", "said"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_told_before_anything_is_sent(door: SyncDoor, given: dict[str, Any], said: str) -> None:
    with pytest.raises(specclient.ConfigError, match=said) as caught:
        door.create(**given)
    assert "\n" not in str(caught.value)
    assert not door.server.requests


def test_what_an_endpoint_may_take_is_sent(door: SyncDoor) -> None:
    door.server.respond = lambda _: reply(completion())
    door.create(messages=[{"role": "assistant", "content": None, "tool_calls": []}])
    door.create(messages=(message for message in MESSAGES), n=2)
    door.create(messages=[])
    door.create(messages=[{"role": "user"}, {"content": "x"}])
    assert [len(request.json["messages"]) for request in door.server.requests] == [1, 1, 0, 2]


def test_a_header_that_is_not_given_is_left_out(door: SyncDoor) -> None:
    door.make(default_headers={"x-a": "1", "x-b": "1"})
    door.server.play(reply(completion()))
    door.create(extra_headers={"x-a": specclient.omit, "x-b": None, "x-c": specclient.NOT_GIVEN})
    assert not {"x-a", "x-b", "x-c"} & door.server.requests[0].headers.keys()


def test_a_blank_key_is_none(door: SyncDoor) -> None:
    door.make(provider="vllm", api_key=" ")
    door.server.play(reply(completion()))
    door.create()
    assert "authorization" not in door.server.requests[0].headers
    with pytest.raises(specclient.ConfigError, match="No API key"):
        door.make(provider="groq", api_key="")


LOCAL: dict[str, tuple[dict[str, Any], str]] = {
    "n-2": ({"n": 2}, "makes one answer a request; send it 2 times"),
    "half-a-pair": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "ab\ud800"}]}]},
        r"messages\[0\]\.content\[0\]\.text holds half a surrogate pair \(U\+D800 at 2\)",
    ),
    "half-a-stop": ({"stop": ["\udfff"]}, r"stop\[0\] holds half a surrogate pair"),
    "number": ({"messages": [{"role": "user", "content": 5}]}, "text or a list of parts, not int"),
}


@pytest.mark.parametrize(("given", "said"), LOCAL.values(), ids=LOCAL)
def test_what_the_engine_cannot_read(door: SyncDoor, given: dict[str, Any], said: str) -> None:
    door.make(provider="local", base_url=None, api_key=None, model="tiny", engine=FakeEngine("x"))
    with pytest.raises(specclient.BadRequestError, match=said):
        door.create(**given)


def test_the_engine_reads_no_content_as_none(door: SyncDoor) -> None:
    engine = FakeEngine("x")
    door.make(provider="local", base_url=None, api_key=None, model="tiny", engine=engine)
    door.create(messages=[USER, {"role": "assistant", "content": None}])
    assert engine.messages[0][0][1]["content"] == ""
