"""B: what servers, proxies and networks really do."""

from __future__ import annotations

import base64
import json
import logging
import pickle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import specclient
from tests.conformance.all_doors import DOORS
from tests.doors import MESSAGES, SyncDoor, text_of
from tests.providers.fixtures import Case
from tests.server import (
    Close,
    ScriptedServer,
    chunk,
    completion,
    data,
    error,
    finish,
    reply,
    role,
    sse,
    stream,
    usage_chunk,
)

THREE = [role(), chunk("one "), chunk("two ")]
GONE = {"message": "upstream is gone", "code": 502}


def raw(value: object, event: str = "") -> bytes:
    head = f"event: {event}\n".encode() if event else b""
    return head + data(value)


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "B10": ({"error": GONE}, specclient.InternalServerError, "upstream is gone"),
    "B10-text": ({"error": "upstream is gone"}, specclient.APIError, "upstream is gone"),
    "B10-vllm": (
        {"object": "error", "message": "upstream is gone", "code": 400},
        specclient.BadRequestError,
        "upstream is gone",
    ),
    "B10-null-choices": ({"error": GONE, "choices": None}, specclient.InternalServerError, "gone"),
    "B10-no-choices": ({"error": GONE, "choices": []}, specclient.InternalServerError, "gone"),
    "B10-openrouter": (
        {**chunk("", finish_reason="error"), "error": GONE, "provider": "Acme"},
        specclient.InternalServerError,
        "gone",
    ),
    "B10-in-a-choice": (
        {**chunk(""), "choices": [{"index": 0, "delta": {}, "error": GONE, "finish_reason": "error"}]},
        specclient.InternalServerError,
        "gone",
    ),
    "B10-code-in-words": (
        {"error": {"message": "upstream is gone", "code": "server_error"}},
        specclient.APIError,
        "gone",
    ),
    "B10-type": ({"type": "error", "error": GONE}, specclient.InternalServerError, "gone"),
    "B10-status": (
        {"error": {"message": "slow down", "status": 429}},
        specclient.RateLimitError,
        "slow down",
    ),
    "B10-event": (raw(GONE, "error"), specclient.InternalServerError, "gone"),
    "B10-event-nested": (raw({"error": GONE}, "error"), specclient.InternalServerError, "gone"),
    "B10-event-text": (b"event: error\ndata: upstream is gone\n\n", specclient.APIError, "upstream is gone"),
    "B10-detail": ({"detail": "upstream is gone"}, specclient.APIError, "gone"),
    "B10-bare": ({"message": "upstream is gone", "code": 502}, specclient.InternalServerError, "gone"),
}


@pytest.mark.parametrize(("event", "kind", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_inside_a_200_stream(door: SyncDoor, event: Any, kind: type[Exception], said: str) -> None:
    pieces = [data(piece) if isinstance(piece, dict) else piece for piece in (*THREE, event)]
    for blocks in (pieces, [b"".join(pieces)]):
        door.server.requests.clear()
        door.server.play(stream(*blocks))
        seen: list[Any] = []
        opened = door.open()
        with pytest.raises(kind, match=said) as caught:
            seen.extend(opened)
        assert caught.value.partial == text_of(seen) == "one two ", "what came is given before the error"
    assert len(door.server.requests) == 1


@pytest.mark.parametrize(("event", "kind", "said"), ERRORS.values(), ids=ERRORS)
def test_the_same_before_any_content_may_be_asked_again(
    door: SyncDoor, waits: list[float], event: Any, kind: type[Exception], said: str
) -> None:
    door.server.respond = lambda _: sse(role(), event)
    with pytest.raises(kind, match=said):
        door.read(max_retries=1)
    again = issubclass(kind, specclient.InternalServerError | specclient.RateLimitError)
    assert len(door.server.requests) == 1 + again


B34 = {
    "B34": ({"error": {"code": 429, "message": "Slow down"}, "choices": None}, specclient.RateLimitError),
    "B34-no-choices": ({"error": {"code": 429, "message": "Slow down"}}, specclient.RateLimitError),
    "B34-text-code": ({"error": {"code": "429", "message": "Slow down"}}, specclient.RateLimitError),
    "B34-metadata": (
        {"error": {"code": 503, "message": "Slow down", "metadata": {"provider_name": "Acme"}}},
        specclient.InternalServerError,
    ),
    "B34-choices-kept": (
        {**completion(""), "error": {"code": 429, "message": "Slow down"}},
        specclient.RateLimitError,
    ),
    "B34-in-a-choice": (
        {**completion(), "choices": [{"index": 0, "error": {"code": 429, "message": "Slow down"}}]},
        specclient.RateLimitError,
    ),
}


@pytest.mark.parametrize(("body", "kind"), B34.values(), ids=B34)
def test_an_error_inside_a_plain_200(
    door: SyncDoor, waits: list[float], body: Any, kind: type[Exception]
) -> None:
    door.server.play(reply(body), reply(completion()))
    assert door.create().choices[0].message.content == "Hello"
    assert len(waits) == 1
    door.server.play(reply(body))
    with pytest.raises(kind, match="Slow down") as caught:
        door.create(max_retries=0)
    if "metadata" in str(body):
        assert caught.value.body["metadata"]["provider_name"] == "Acme"


ENDLESS = {
    "B13": lambda: sse(*THREE, done=False),
    "B13-close": lambda: sse(*THREE, done=False, framing="close"),
    "B13-cut-frame": lambda: stream(*map(data, THREE), data(chunk("three"))[:25], framing="close"),
    "B13-usage-only": lambda: sse(*THREE, usage_chunk(), done=False),
    "B13-null-reason": lambda: sse(*THREE, chunk("", finish_reason=None), done=False),
    "B13-no-last-chunk": lambda: sse(*THREE, done=False, terminate=False),
}


@pytest.mark.parametrize("broken", ENDLESS.values(), ids=ENDLESS)
def test_an_end_without_a_mark_is_no_answer(door: SyncDoor, broken: Any) -> None:
    door.server.play(broken())
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.read()
    assert caught.value.partial == "one two "


LAST = {
    "B13": b"data: [DONE]\n\n",
    "B13-bare": b"data: [DONE]",
    "B13-one-line-end": b"data: [DONE]\r\n",
    "B13-blanks": b"data:   [DONE]  \n\n",
    "B13-no-blank": b"data:[DONE]\n\n",
}


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("last", LAST.values(), ids=LAST)
def test_done_is_a_mark_however_it_is_written(door: SyncDoor, last: bytes, framing: str) -> None:
    door.server.play(stream(*map(data, THREE), last, framing=framing))
    assert text_of(door.read()) == "one two "


def test_b34_an_error_in_a_list(door: SyncDoor) -> None:
    body = [{"error": {"code": 400, "message": "No such field"}}]
    for answer in (reply(body), reply(body, 400), reply(body)):
        door.server.play(answer)
    for streamed in (False, False, True):
        with pytest.raises(specclient.BadRequestError, match="No such field"):
            door.create(stream=streamed) if not streamed else door.read()


@pytest.mark.parametrize("way", DOORS)
@pytest.mark.parametrize("header", [{"retry-after": "75"}, {"retry-after-ms": "75000"}])
def test_b21_the_same_429_through_every_door(
    way: str, server: ScriptedServer, tmp_path: Path, header: dict[str, str]
) -> None:
    server.respond = lambda _: error(429, "Slow down", {**header, "x-request-id": "r1"})
    case = Case("fireworks", "m", "slow", {"messages": MESSAGES}, b"", "application/json")
    opened = DOORS[way](server, tmp_path)
    try:
        with pytest.raises(Exception, match=r"Slow down|refused") as caught:
            opened.ask(case)
        assert caught.value.status_code == 429
        if "wrapped" in way:
            assert caught.value.response.headers.items() >= header.items()
        elif way == "gateway":
            answer = opened.running.client.post(
                "/chat/completions", json={"model": "it", "messages": MESSAGES}
            )
            assert float(answer.headers["retry-after"]) == 75
        else:
            assert caught.value.retry_after == 75
    finally:
        opened.close()


@pytest.mark.parametrize("cap", [120, 600])
def test_b19_up_to_the_cap_it_is_obeyed(door: SyncDoor, waits: list[float], cap: int) -> None:
    door.server.play(error(429, "later", {"retry-after": str(cap)}), reply(completion()))
    if cap <= 120:
        door.create()
        assert waits == [cap]
        return
    with pytest.raises(specclient.RateLimitError, match="later") as caught:
        door.create()
    assert (caught.value.retry_after, waits) == (cap, [])


STATUSES = {
    "B22": (529, {}, True),
    "B22-said-no": (503, {"x-should-retry": "false"}, False),
    "B22-said-yes": (409, {"x-should-retry": "true"}, True),
    "B22-400-said-yes": (400, {"x-should-retry": "true"}, True),
    "B22-capitals": (503, {"X-Should-Retry": "FALSE"}, False),
    "B22-cloudflare": (520, {}, True),
    "B22-501": (501, {}, True),
    "B22-402": (402, {}, False),
}


@pytest.mark.parametrize(("status", "headers", "again"), STATUSES.values(), ids=STATUSES)
def test_which_statuses_are_asked_again(
    door: SyncDoor, waits: list[float], status: int, headers: dict[str, str], again: bool
) -> None:
    door.server.play(error(status, "no", headers), reply(completion()))
    if again:
        assert door.create().choices[0].message.content == "Hello"
    else:
        with pytest.raises(specclient.APIStatusError):
            door.create()
    assert len(waits) == again


DROPS = {
    "B24": lambda: stream(*map(data, THREE), Close()),
    "B24-reset": lambda: stream(*map(data, THREE), Close(reset=True)),
    "B24-tools": lambda: stream(
        data(chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": '{"a'}}])), Close()
    ),
    "B24-reasoning": lambda: stream(data(chunk(reasoning_content="Hm")), Close(reset=True)),
    "B24-refusal": lambda: stream(data(chunk(refusal="I ")), Close()),
    "B24-second-choice": lambda: stream(
        data({**chunk(), "choices": [{"index": 1, "delta": {"content": "x"}}]}), Close()
    ),
}


@pytest.mark.parametrize("dropped", DROPS.values(), ids=DROPS)
def test_no_retry_once_content_was_shown(door: SyncDoor, waits: list[float], dropped: Any) -> None:
    door.server.respond = lambda _: dropped()
    with pytest.raises(specclient.APIConnectionError):
        door.read()
    assert (len(door.server.requests), waits) == (1, [])


def test_b31_a_client_does_not_pickle_and_says_what_to_do(door: SyncDoor) -> None:
    with pytest.raises(TypeError, match="make a client in the other process"):
        pickle.dumps(door.client)


EMPTY = {
    "B32": {"choices": []},
    "B32-null": {"choices": None},
    "B32-absent": {},
    "B32-null-delta": {"choices": [{"index": 0, "delta": None}]},
    "B32-no-delta": {"choices": [{"index": 0, "finish_reason": None}]},
    "B32-filter": {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
    "B32-null-choice": {"choices": [None]},
}


@pytest.mark.parametrize("odd", EMPTY.values(), ids=EMPTY)
def test_chunks_without_choices(door: SyncDoor, odd: dict[str, Any]) -> None:
    frame = {"id": "c", "object": "chat.completion.chunk", **odd}
    door.server.play(
        sse(frame, chunk("Hel"), frame, chunk("lo"), finish(), {**frame, "usage": {"prompt_tokens": 1}})
    )
    chunks = door.read()
    assert "".join(c.delta.content or "" for got in chunks for c in got.choices if c and c.delta) == "Hello"
    assert chunks[-1].specclient.usage.prompt == 1


def _call(arguments: str, *, name: str | None = None, **extra: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments} | ({"name": name} if name else {}), **extra}


CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str]]]] = {
    "B33": (
        [[_call("{}", name="f", id="1"), _call("[]", name="g", id="2")]],
        [("f", "{}"), ("g", "[]")],
    ),
    "B33-one": ([[_call('{"a"', name="f", id="1")], [_call(":1}")]], [("f", '{"a":1}')]),
    "B33-empty-id": ([[_call('{"a"', name="f", id="1")], [_call(":1}", id="")]], [("f", '{"a":1}')]),
    "B33-index": (
        [
            [_call('{"a"', name="f", id="1", index=0)],
            [_call("[]", name="g", id="2", index=1), _call(":1}", index=0)],
        ],
        [("f", '{"a":1}'), ("g", "[]")],
    ),
    "B33-later": (
        [[_call("{}", name="f", id="1")], [_call("[", name="g", id="2")], [_call("]")]],
        [("f", "{}"), ("g", "[]")],
    ),
    "B33-same-id": ([[_call("{", name="f", id="1")], [_call("}", id="1")]], [("f", "{}")]),
    "B33-no-ids": ([[_call("{}", name="f"), _call("[]", name="g")]], [("f", "{}"), ("g", "[]")]),
}


@pytest.mark.parametrize(("deltas", "expected"), CALLS.values(), ids=CALLS)
def test_tool_calls_without_index(
    door: SyncDoor, deltas: list[list[dict[str, Any]]], expected: list[tuple[str, str]]
) -> None:
    door.server.play(sse(*[chunk(tool_calls=calls) for calls in deltas], finish("tool_calls")))

    async def areads() -> Any:
        async with door.client.chat.completions.stream(messages=MESSAGES) as events:
            return await events.get_final_completion()

    def reads() -> Any:
        with door.client.chat.completions.stream(messages=MESSAGES) as events:
            return events.get_final_completion()

    final = door.run(areads()) if door.kind == "async" else reads()
    made = final.choices[0].message.tool_calls
    assert [(call.function.name, call.function.arguments) for call in made] == expected


PARTS = {
    "B36": (
        [
            [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}]}],
            [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}],
        ],
        "Hm. ",
    ),
    "B36-together": (
        [
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}]},
                {"type": "text", "text": "Hello"},
            ]
        ],
        "Hm. ",
    ),
    "B36-text-thinking": ([[{"type": "thinking", "thinking": "Hm. "}], "Hello"], "Hm. "),
    "B36-reference": ([[{"type": "text", "text": "Hello"}, {"type": "reference", "reference_ids": [1]}]], ""),
    "B36-one-part": ([{"type": "text", "text": "Hello"}], ""),
    "B36-strings": ([["Hel", "lo"]], ""),
}


@pytest.mark.parametrize(("contents", "reasoning"), PARTS.values(), ids=PARTS)
def test_content_as_parts(door: SyncDoor, contents: list[Any], reasoning: str) -> None:
    door.server.play(sse(*[chunk(content) for content in contents], finish()))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert "".join(c.delta.reasoning_content or "" for got in chunks for c in got.choices) == reasoning
    whole = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    answer = completion()
    answer["choices"][0]["message"]["content"] = whole
    door.server.play(reply(answer))
    message = door.create().choices[0].message
    assert (message.content, message.reasoning_content or "") == ("Hello", reasoning)


@pytest.mark.parametrize("provider", ["openai", "azure", "groq", "cerebras", "vllm", "openai_compatible"])
@pytest.mark.parametrize("given", [None, {"include_usage": False}, {"include_obfuscation": False}])
def test_b37_b38_stream_options(door: SyncDoor, provider: str, given: Any) -> None:
    url = door.server.origin if provider == "azure" else door.server.url
    door.make(provider=provider, model="gpt-4o", base_url=url)
    options = {} if given is None else {"stream_options": given}
    door.server.play(sse(chunk("a"), finish()), reply(completion()))
    door.read(**options)
    door.create(**options)
    streamed, plain = (request.json for request in door.server.requests)
    assert "stream_options" not in plain
    expected = dict(given or {})
    if provider in ("openai", "azure", "cerebras", "vllm"):
        expected.setdefault("include_usage", True)
    assert streamed.get("stream_options", {}) == expected


SECRET = "sk-sentinel/0123456789+abc"
ECHOES = {
    "B39": SECRET,
    "B39-header": f"Bearer {SECRET}",
    "B39-quoted": quote(SECRET, safe=""),
    "B39-base64": base64.b64encode(SECRET.encode()).decode(),
    "B39-json": json.dumps(SECRET).replace("/", "\\/"),
    "B39-cut": SECRET[:20] + "...",
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_key_that_is_echoed_is_shown_nowhere(
    door: SyncDoor, caplog: pytest.LogCaptureFixture, echo: str
) -> None:
    caplog.set_level(logging.DEBUG)
    door.make(api_key=SECRET)
    answers = [
        error(401, f"Incorrect API key provided: {echo}."),
        reply(f"<html><title>{echo}</title>".encode(), 401),
        reply({"detail": [{"loc": ["header"], "msg": echo, "input": {echo: echo}}]}, 422),
        sse(role(), {"error": {"message": f"bad key {echo}", "code": 401}}),
    ]
    for number, answer in enumerate(answers):
        door.server.play(answer)
        with pytest.raises(specclient.APIError) as caught:
            door.read() if number == 3 else door.create()
        shown = [str(caught.value), repr(caught.value), str(caught.value.__dict__), repr(door.client)]
        shown += [repr(door.client.target), repr(getattr(caught.value, "response", "")), caplog.text]
        response = getattr(caught.value, "response", None)
        if response is not None:
            shown += [response.text, repr(response.headers), repr(response.request.headers)]
        for text in shown:
            assert SECRET not in text
            assert echo not in text


def test_b39_a_key_echoed_in_a_header(door: SyncDoor) -> None:
    door.make(api_key=SECRET)
    for answer in (error(401, "no", {"x-echo": SECRET}), reply({"error": "no"}, headers={"x-echo": SECRET})):
        door.server.play(answer)
        with pytest.raises(specclient.APIError) as caught:
            door.create()
        assert SECRET not in str(caught.value.__dict__)


URLS = ["{}/v1", "{}/v1/", "{}", "{}/", "{}/v1/chat/completions", "{}/v1//"]


@pytest.mark.parametrize("spelling", URLS)
@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "openai", "llama_cpp", "mistral"])
def test_b41_every_spelling_of_an_address(door: SyncDoor, provider: str, spelling: str) -> None:
    door.make(provider=provider, base_url=spelling.format(door.server.origin))
    door.server.play(reply(completion()))
    door.create()
    assert door.server.requests[-1].target == "/v1/chat/completions"


WHOLE = "{}/openai/deployments/d/chat/completions?api-version="


def test_b41_azures_whole_addresses(door: SyncDoor) -> None:
    for version, outcome in (("2024-10-21", "withheld"), ("2025-01-01-preview", "forwarded")):
        door.make(provider="azure", model="gpt-4o", base_url=WHOLE.format(door.server.origin) + version)
        door.server.play(reply(completion()))
        assert door.create(prediction="known").specclient.prediction.outcome == outcome
        assert door.server.requests[-1].target == WHOLE.format("") + version


@pytest.mark.parametrize("spelling", ["{}/api/v3", "{}/api/v3/", "{}/api/v3/chat/completions"])
def test_b41_a_path_of_ones_own_stays(door: SyncDoor, spelling: str) -> None:
    door.make(base_url=spelling.format(door.server.origin))
    door.server.play(reply(completion()))
    door.create()
    assert door.server.requests[-1].target == "/api/v3/chat/completions"


def test_half_a_surrogate_pair_in_a_raw_answer(door: SyncDoor) -> None:
    body = json.dumps(completion("a\ud83d")).encode()
    door.server.play(reply(body, headers={"content-type": "application/json"}))
    got = door.run(door.client.chat.completions.with_raw_response.create(messages=MESSAGES))
    assert got.parse().choices[0].message.content == "a\ud83d"
    assert json.loads(got.content)["choices"][0]["message"]["content"] == "a\ud83d"
