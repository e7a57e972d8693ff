"""OpenAI's surface, the same for both clients."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import specclient
from specclient.client import AsyncClient, Client
from tests.doors import KEY, MESSAGES, SyncDoor
from tests.server import chunk, completion, error, finish, reply, sse


def test_nothing_is_sent_that_was_not_set(door: SyncDoor) -> None:
    door.server.play(reply(completion()))
    answer = door.create()
    assert answer.choices[0].message.content == "Hello"
    assert door.sent == {"model": "m", "messages": MESSAGES}
    assert door.server.requests[0].path == "/v1/chat/completions"
    assert door.server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_none_and_omitted_are_two_things(door: SyncDoor) -> None:
    door.server.play(reply(completion()))
    door.create(
        temperature=None, top_p=specclient.NOT_GIVEN, seed=specclient.omit, stop=["x"], presence_penalty=0
    )
    assert door.sent == {
        "model": "m",
        "messages": MESSAGES,
        "temperature": None,
        "stop": ["x"],
        "presence_penalty": 0,
    }


def test_per_call_headers_query_and_body(door: SyncDoor) -> None:
    door.make(default_headers={"x-a": "1", "x-b": "1"}, default_query={"q": "1"})
    door.server.play(reply(completion()))
    door.create(
        model="other",
        extra_headers={"x-b": "2", "User-Agent": None},
        extra_query={"r": "2"},
        extra_body={"top_k": 3, "temperature": 0},
        temperature=1,
        idempotency_key="once",
    )
    request = door.server.requests[0]
    assert request.json == {"model": "other", "messages": MESSAGES, "temperature": 0, "top_k": 3}
    assert (request.headers["x-a"], request.headers["x-b"]) == ("1", "2")
    assert "user-agent" not in request.headers
    assert request.headers["idempotency-key"] == "once"
    assert request.query == {"q": "1", "r": "2"}


def test_an_unknown_argument_is_a_type_error(door: SyncDoor) -> None:
    with pytest.raises(TypeError, match=r"did you mean 'temperature'\? .*extra_body"):
        door.create(temprature=1)
    assert door.server.requests == []


def test_messages_of_an_answer_go_back_as_they_came(door: SyncDoor) -> None:
    body = completion()
    body["choices"][0]["message"]["vendor"] = 1
    door.server.play(reply(body), reply(completion()))
    message = door.create().choices[0].message
    door.create(messages=[*MESSAGES, message])
    assert door.sent["messages"][1] == {"role": "assistant", "content": "Hello", "vendor": 1}


def test_unknown_fields_are_kept_and_odd_types_survive(door: SyncDoor) -> None:
    body = completion("Hello", x_vendor={"a": 1})
    body["choices"][0] |= {"finish_reason": 5, "index": "0"}
    body["usage"]["prompt_tokens"] = "five"
    door.server.play(reply(body))
    answer = door.create()
    assert answer.x_vendor == {"a": 1}
    assert answer.choices[0].message.content == "Hello"
    assert answer.choices[0].finish_reason == 5
    assert answer.usage.prompt_tokens == "five"
    assert answer.usage.completion_tokens == 2


def test_content_parts_of_a_plain_answer(door: SyncDoor) -> None:
    body = completion()
    body["choices"][0]["message"]["content"] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
        {"type": "text", "text": "Hello"},
    ]
    door.server.play(reply(body))
    message = door.create().choices[0].message
    assert (message.content, message.reasoning_content) == ("Hello", "hmm")


def test_null_choices_with_an_error_inside_a_200(door: SyncDoor, waits: list[float]) -> None:
    body = {"choices": None, "error": {"message": "slow", "code": 429, "metadata": {"provider_name": "X"}}}
    door.server.play(reply(body), reply(completion()))
    answer = door.create()
    assert [a.error for a in answer.specclient.attempts] == ["RateLimitError", None]


@pytest.mark.parametrize("body", [{"id": "1", "choices": None}, {"id": "1"}, [], "x", b"", b"nonsense"])
def test_an_answer_that_is_none(door: SyncDoor, body: Any) -> None:
    door.server.play(reply(body))
    with pytest.raises(specclient.APIResponseValidationError):
        door.create()


def test_a_gzipped_answer(door: SyncDoor) -> None:
    door.server.play(reply(completion(), gzip=True))
    assert door.create().choices[0].message.content == "Hello"


def test_raw_response(door: SyncDoor) -> None:
    door.server.play(reply(completion(), headers={"x-request-id": "r1", "x-ratelimit-remaining": "3"}))
    raw = door.run(door.client.chat.completions.with_raw_response.create(messages=MESSAGES))
    assert (raw.status_code, raw.request_id, raw.retries_taken) == (200, "r1", 0)
    assert raw.headers["X-RateLimit-Remaining"] == "3"
    assert raw.parse().choices[0].message.content == "Hello"
    assert raw.parse()._request_id == "r1"
    assert raw.json()["object"] == "chat.completion"
    assert raw.http_response.json() == raw.json()


def test_raw_response_of_a_stream(door: SyncDoor) -> None:
    door.server.play(sse(chunk("Hello"), finish(), headers={"x-request-id": "r1"}))
    raw = door.run(door.client.chat.completions.with_raw_response.create(messages=MESSAGES, stream=True))
    assert raw.headers["x-request-id"] == "r1"
    stream = raw.parse()
    assert door.next(stream).choices[0].delta.content == "Hello"
    assert door.next(stream).specclient.request_id == "r1"
    assert door.next(stream) is None


def test_with_options_shares_connections(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(reply(completion()), error(500, "no"), reply(completion()))
    client = door.make()
    door.create()
    copy = client.with_options(max_retries=0, timeout=3, default_headers={"x-a": "1"})
    with pytest.raises(specclient.InternalServerError):
        door.run(copy.chat.completions.create(messages=MESSAGES))
    assert door.server.requests[1].headers["x-a"] == "1"
    assert copy.defaults.timeout.first_byte == 3
    door.create()
    assert "x-a" not in door.server.requests[2].headers
    assert {r.connection for r in door.server.requests} == {0}


def test_with_options_for_another_model(door: SyncDoor) -> None:
    door.server.play(reply(completion()))
    other = door.client.with_options(model="m2")
    door.made.append(other)
    door.create()
    assert door.sent["model"] == "m2"


def test_models(door: SyncDoor) -> None:
    page = {"object": "list", "data": [{"id": "a", "object": "model", "vendor": 1}, {"id": "b"}]}
    door.server.play(reply(page), reply(page))
    listed = door.run(door.client.models.list())
    assert [model.id for model in listed] == ["a", "b"]
    assert listed.data[0].vendor == 1
    assert door.server.requests[0].method == "GET"
    assert door.server.requests[0].path == "/v1/models"
    assert door.server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    if door.kind == "async":
        assert door.next(door.client.models.list()).id == "a"


def test_models_are_asked_for_again(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(error(503, "busy"), reply({"data": []}))
    assert len(door.run(door.client.models.list())) == 0
    assert len(waits) == 1


def test_completions(door: SyncDoor) -> None:
    body = {
        "id": "c",
        "object": "text_completion",
        "choices": [{"index": 0, "text": "lo", "finish_reason": "stop"}],
    }
    door.server.play(
        reply(body), sse(body | {"choices": [{"index": 0, "text": "lo", "finish_reason": None}]}, body)
    )
    answer = door.run(door.client.completions.create(prompt="Hel", max_tokens=3))
    assert answer.choices[0].text == "lo"
    assert answer.specclient.prediction.outcome == "none"
    assert door.server.requests[0].path == "/v1/completions"
    stream = door.run(door.client.completions.create(prompt="Hel", stream=True))
    assert door.next(stream).choices[0].text == "lo"
    assert door.next(stream).specclient is not None
    assert door.next(stream) is None


def test_what_is_not_there_says_what_to_use(door: SyncDoor) -> None:
    for name in ("responses", "embeddings", "files", "beta"):
        with pytest.raises(AttributeError, match=r"official SDK.*specclient\.wrap"):
            getattr(door.client, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = door.client.nonsense
    with pytest.raises(AttributeError, match="extra_body="):
        _ = door.client.post
    with pytest.raises(AttributeError, match=r"client\.chat\.completions\.with_raw_response\.create"):
        _ = door.client.with_raw_response
    with pytest.raises(TypeError, match=r"specclient\.wrap"):
        door.make(http_client=object())
    with pytest.raises(TypeError, match="provider='azure'"):
        door.make(azure_endpoint="https://x")
    with pytest.raises(specclient.ConfigError, match="max_connections"):
        door.make(max_connections=0)
    with pytest.raises(specclient.ConfigError, match="default_headers is an object"):
        door.make(default_headers=5)
    completions = door.client.chat.completions
    with pytest.raises(AttributeError, match=r"specclient\.wrap"):
        _ = completions.parse
    with pytest.raises(AttributeError, match="official SDK"):
        _ = completions.retrieve
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = completions.nonsense


def test_a_closed_client_says_so(door: SyncDoor) -> None:
    client = door.make()
    door.run(client.close())
    assert client.is_closed()
    with pytest.raises(RuntimeError, match="closed"):
        door.create()


def test_a_client_is_not_pickled(door: SyncDoor) -> None:
    with pytest.raises(TypeError, match="name"):
        pickle.dumps(door.client)


def test_the_names_of_openai(door: SyncDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    make: Any = specclient.OpenAI if door.kind == "sync" else specclient.AsyncOpenAI
    assert (make().target.provider, make().target.name) == ("openai", "openai")
    monkeypatch.setenv("OPENAI_BASE_URL", door.server.url)
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj")
    client = make(model="m")
    door.made.append(client)
    door.server.play(reply(completion()))
    door.create()
    request = door.server.requests[0]
    assert request.headers["authorization"] == "Bearer sk-openai"
    assert (request.headers["openai-organization"], request.headers["openai-project"]) == ("org", "proj")
    assert client.target.provider == "openai_compatible", "nothing is documented about this address"


@pytest.mark.parametrize("spelling", ["", "/", "/v1", "/v1/"])
def test_every_spelling_of_a_base_url_is_one(door: SyncDoor, spelling: str) -> None:
    door.make(base_url=door.server.origin + spelling)
    door.server.play(reply(completion()))
    door.create()
    assert door.server.requests[0].target == "/v1/chat/completions"


def test_both_clients_have_the_same_names_and_arguments() -> None:
    def public(thing: Any) -> dict[str, Any]:
        return {
            name: list(inspect.signature(value).parameters)
            for name, value in inspect.getmembers(thing, callable)
            if not name.startswith("_")
        }

    from specclient.client import more_resources, resources, stream

    allowed = {"aclose", "begin"}
    for sync, twin in [
        (Client, AsyncClient),
        (resources.Completions, resources.AsyncCompletions),
        (more_resources.TextCompletions, more_resources.AsyncTextCompletions),
        (more_resources.Models, more_resources.AsyncModels),
        (stream.Stream, stream.AsyncStream),
    ]:
        ours, theirs = public(sync), public(twin)
        assert {k: v for k, v in theirs.items() if k not in allowed} == ours
