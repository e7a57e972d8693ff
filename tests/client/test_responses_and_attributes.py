"""Raw and streaming responses, and what else of a client's surface applications read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import specclient
from tests.doors import KEY, MESSAGES, OpenStream, SyncDoor, text_of
from tests.server import Stall, chunk, completion, data, error, finish, reply, role, sse, stream, usage_chunk


def test_what_a_raw_response_tells(door: SyncDoor) -> None:
    door.server.play(reply(completion(), headers={"x-request-id": "r"}))
    create = door.client.chat.completions.with_raw_response.create
    raw = door.run(create(messages=MESSAGES, extra_query={"token": "secret"}))
    assert (raw.method, raw.http_version, raw.retries_taken) == ("POST", "HTTP/1.1", 0)
    assert raw.url.path == "/v1/chat/completions"
    assert "secret" not in str(raw.url)
    assert KEY not in str(raw.http_request.headers)
    assert 0 < raw.elapsed.total_seconds() < 60
    assert raw.http_response.request.url == raw.url


def entered(door: SyncDoor, manager: Any) -> Any:
    return door.run(manager.__aenter__()) if door.kind == "async" else manager.__enter__()


def left(door: SyncDoor, manager: Any) -> None:
    door.run(manager.__aexit__(None, None, None)) if door.kind == "async" else manager.__exit__(
        None, None, None
    )


def all_of(door: SyncDoor, iterator: Any) -> list[Any]:
    return list(OpenStream(door, iterator))


def test_a_streaming_response_of_a_plain_answer(door: SyncDoor) -> None:
    door.server.respond = lambda _: reply(completion(), headers={"x-request-id": "r"})
    create = door.client.chat.completions.with_streaming_response.create
    manager = create(messages=MESSAGES)
    assert not door.server.requests, "nothing is sent before the block is entered"
    response = entered(door, manager)
    assert (response.status_code, response.request_id, response.headers["x-request-id"]) == (200, "r", "r")
    assert door.run(response.parse()).choices[0].message.content == "Hello"
    assert door.run(response.json())["choices"][0]["message"]["content"] == "Hello"
    assert json.loads(door.run(response.text())) == json.loads(door.run(response.read()))
    assert b"".join(all_of(door, response.iter_bytes(7))) == door.run(response.read())
    left(door, manager)


def test_a_streaming_response_of_a_stream(door: SyncDoor) -> None:
    door.server.respond = lambda _: sse(role(), chunk("Hi é"), finish(), usage_chunk())
    create = door.client.chat.completions.with_streaming_response.create
    manager = create(messages=MESSAGES, stream=True)
    lines = all_of(door, entered(door, manager).iter_lines())
    left(door, manager)
    assert lines[1::2] == [""] * (len(lines) // 2)
    assert lines[-2] == "data: [DONE]"
    objects = [json.loads(line.removeprefix("data: ")) for line in lines[:-2:2]]
    assert [o["choices"][0]["delta"].get("content") for o in objects if o["choices"]] == ["", "Hi é", None]
    assert objects[-1]["specclient"]["usage"]["completion"] == 2
    manager = create(messages=MESSAGES, stream=True)
    assert text_of(all_of(door, door.run(entered(door, manager).parse()))) == "Hi é"
    left(door, manager)


def test_a_streaming_response_that_is_left_frees_its_connection(door: SyncDoor) -> None:
    door.server.play(stream(data(chunk("a")), Stall()))
    manager = door.client.chat.completions.with_streaming_response.create(messages=MESSAGES, stream=True)
    entered(door, manager)
    left(door, manager)
    door.server.wait_for(lambda server: server.left == 1)


def test_attributes_that_applications_read(door: SyncDoor) -> None:
    client = door.make(
        timeout=3,
        max_retries=5,
        organization="o",
        project="p",
        default_headers={"x-a": "1"},
        default_query={"q": 1},
    )
    assert str(client.base_url) == door.server.url + "/"
    assert (client.api_key, client.organization, client.project) == (KEY, "o", "p")
    assert (client.max_retries, client.timeout.first_byte) == (5, 3)
    assert (client.default_headers, client.default_query) == ({"x-a": "1"}, {"q": 1})
    assert KEY not in repr(client)
    plain = door.make()
    assert (plain.max_retries, plain.timeout) == (specclient.DEFAULT_MAX_RETRIES, specclient.DEFAULT_TIMEOUT)
    local = door.make(provider="local", base_url=None, api_key=None, engine=object())
    assert (local.base_url, local.api_key) == (None, None)


def test_one_model(door: SyncDoor) -> None:
    door.server.play(
        reply({"id": "a/b", "object": "model", "created": 1, "owned_by": "x"}), error(404, "no model")
    )
    assert door.run(door.client.models.retrieve("a/b")).owned_by == "x"
    assert door.server.requests[0].target == "/v1/models/a%2Fb"
    with pytest.raises(specclient.NotFoundError, match="no model"):
        door.run(door.client.models.retrieve("c"))
    with pytest.raises(specclient.ConfigError, match="empty"):
        door.run(door.client.models.retrieve(""))
    client = door.make(provider="local", base_url=None, api_key=None, model="tiny", engine=object())
    assert door.run(client.models.retrieve("tiny")).id == "tiny"
    with pytest.raises(specclient.NotFoundError, match="'other'"):
        door.run(client.models.retrieve("other"))
