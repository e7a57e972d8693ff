"""Every fault of a stream that users have reported, through the sync and the async client."""

from __future__ import annotations

import json
from typing import Any

import pytest

import specclient
from tests.doors import SyncDoor, text_of
from tests.server import (
    DONE,
    Close,
    Stall,
    Step,
    Until,
    Wait,
    chunk,
    completion,
    data,
    error,
    finish,
    head,
    raw,
    reply,
    role,
    split,
    sse,
    stream,
    usage_chunk,
)


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode()


HELLO = (chunk("Hel"), chunk("lo"), finish())


def test_a_plain_stream(door: SyncDoor) -> None:
    door.server.play(sse(role(), *HELLO, usage_chunk()))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert [c.specclient is not None for c in chunks] == [False, False, False, False, True]
    report = chunks[-1].specclient
    assert report.attempts[0].status == 200
    assert report.usage.completion == 2
    assert chunks[-1].to_dict()["specclient"]["target"] == "openai_compatible"
    assert door.server.requests[0].json == {
        "model": "m",
        "messages": [{"role": "user", "content": "Say hello."}],
        "stream": True,
    }


def test_chunks_that_come_one_by_one(door: SyncDoor) -> None:
    """What came before tells nothing of what is not alike, and the connection stays as good as new."""
    texts = ["a", "b ", "c\n", "d", '"e"', "\\", "f\u2028", "é", "😀", "g", "a", "b "]
    pieces = [data(chunk(text)) for text in texts]
    pieces[5:5] = [b": keep-alive\n\n", data(chunk("x" * 70_000)), data(role())]
    steps: list[Step] = [step for piece in pieces for step in (piece, Wait(0.01))]
    door.server.play(*[stream(*steps, data(finish()), data(usage_chunk()), DONE)] * 2)
    whole = "".join([*texts[:5], "x" * 70_000, *texts[5:]])
    for _ in range(2):
        chunks = door.read()
        assert text_of(chunks) == whole
        assert chunks[-1].specclient.usage.completion == 2
    assert door.server.connections == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_line_end_and_any_cut(door: SyncDoor, end: str, size: int) -> None:
    lines = [": hi", "", "retry: 3000", "", "id: 1", ""]
    for value in (role(), chunk("a😀b"), chunk("\u2028\u0085é"), finish()):
        lines += ["data:" + json.dumps(value, ensure_ascii=False), ""]
    whole = end.join([*lines, "data: [DONE]", "", ""]).encode()
    door.server.play(stream(*split(whole, range(size, len(whole), size))))
    assert door.text() == "a😀b\u2028\u0085é"


@pytest.mark.parametrize(
    "noise",
    [
        b": keep-alive\n\n",
        b"retry: 3000\n\n",
        b"id: 4\n\n",
        b"data: :\n\n",
        b"data:\n\n",
        b"event: ping\n\n",
        b"\n\n",
    ],
)
def test_noise_between_events_is_no_event(door: SyncDoor, noise: bytes) -> None:
    door.server.play(sse(noise, chunk("a"), noise, noise, chunk("b"), noise, finish(), noise))
    chunks = door.read()
    assert text_of(chunks) == "ab"
    assert len(chunks) == 3


def test_a_byte_order_mark(door: SyncDoor) -> None:
    door.server.play(stream(b"\xef", b"\xbb\xbf" + data(chunk("a")), data(finish()), DONE))
    assert door.text() == "a"


def test_data_over_several_lines(door: SyncDoor) -> None:
    text = json.dumps(chunk("a"), indent=1).replace("\n", "\ndata: ")
    door.server.play(stream(b"data: " + text.encode() + b"\n\n", data(finish()), DONE))
    assert door.text() == "a"


def test_empty_choices_first_and_last(door: SyncDoor) -> None:
    filters = {"id": "", "object": "chat.completion.chunk", "choices": [], "prompt_filter_results": [{}]}
    door.server.play(sse(filters, *HELLO, usage_chunk()))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert chunks[0].prompt_filter_results == [{}]


@pytest.mark.parametrize("where", ["own chunk", "with the finish", "twice", "null in every chunk"])
def test_usage_wherever_it_comes(door: SyncDoor, where: str) -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    events: dict[str, list[dict[str, Any]]] = {
        "own chunk": [*HELLO, usage_chunk()],
        "with the finish": [*HELLO[:2], finish() | {"usage": counts}],
        "twice": [*HELLO[:2], finish() | {"usage": counts}, usage_chunk()],
        "null in every chunk": [c | {"usage": None} for c in HELLO] + [usage_chunk()],
    }
    door.server.play(sse(*events[where]))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert chunks[-1].specclient.usage.completion == 2


def test_content_as_a_list_of_parts(door: SyncDoor) -> None:
    thinking = chunk() | {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
                        {"type": "text", "text": "Hel"},
                    ]
                },
            }
        ]
    }
    door.server.play(sse(thinking, chunk("lo"), finish()))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert chunks[0].choices[0].delta.reasoning_content == "hmm"
    assert chunks[0].choices[0].delta.content_parts[1] == {"type": "text", "text": "Hel"}


def test_missing_done_after_a_finish_reason_is_an_end(door: SyncDoor) -> None:
    door.server.play(sse(*HELLO, done=False, framing="close"))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert chunks[-1].specclient is not None


def test_done_without_a_finish_reason_is_an_end(door: SyncDoor) -> None:
    door.server.play(sse(*HELLO[:2]))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert chunks[-1].choices == []
    assert chunks[-1].specclient is not None


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_clean_end_without_either_is_an_error_with_the_text(door: SyncDoor, framing: str) -> None:
    door.server.play(sse(*HELLO[:2], done=False, framing=framing))
    opened = door.open()
    with pytest.raises(specclient.IncompleteStreamError) as caught:
        list(opened)
    assert caught.value.partial == "Hello"
    assert caught.value.report is not None
    assert caught.value.report.attempts[0].error == "IncompleteStreamError"


@pytest.mark.parametrize("reset", [False, True])
def test_a_broken_connection_is_an_error_with_the_text(door: SyncDoor, reset: bool) -> None:
    steps: tuple[Step, ...] = (data(chunk("Hel")), Wait(0.05), Close(reset))
    door.server.play(stream(*steps, terminate=False))
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.read()
    assert caught.value.partial == "Hel"
    assert len(door.server.requests) == 1, "content was given, so nothing is asked again"


def test_a_body_shorter_than_its_content_length(door: SyncDoor) -> None:
    events = data(chunk("Hel"))
    fields = {"content-type": "text/event-stream", "content-length": str(len(events) + 100)}
    door.server.play(raw(head(200, fields), events, Close()))
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.read()
    assert caught.value.partial == "Hel"


def test_an_error_inside_a_stream(door: SyncDoor) -> None:
    fault = {"error": {"message": "the model fell over", "type": "server_error", "code": None}}
    door.server.play(sse(*HELLO[:2], fault))
    with pytest.raises(specclient.APIError) as caught:
        door.read()
    assert "the model fell over" in str(caught.value)
    assert caught.value.partial == "Hello"
    assert caught.value.type == "server_error"
    assert caught.value.report is not None


def test_an_error_with_a_status_inside_a_stream(door: SyncDoor) -> None:
    fault = {"error": {"message": "slow down", "code": 429, "metadata": {"provider_name": "X"}}}
    door.server.play(sse(*HELLO[:2], fault))
    with pytest.raises(specclient.RateLimitError) as caught:
        door.read()
    assert caught.value.status_code == 429
    assert caught.value.partial == "Hello"
    assert caught.value.body["metadata"] == {"provider_name": "X"}


def test_an_error_event_of_the_older_form(door: SyncDoor) -> None:
    door.server.play(sse(chunk("a"), {"object": "error", "message": "too long", "code": 400}))
    with pytest.raises(specclient.BadRequestError, match="too long"):
        door.read()


def test_an_open_socket_after_done_ends_the_stream(door: SyncDoor) -> None:
    door.server.play(stream(*map(data, HELLO), DONE, Stall(), terminate=False))
    assert door.text(timeout=specclient.Timeout(content_idle=60)) == "Hello"


def test_a_connection_is_used_again_after_done(door: SyncDoor) -> None:
    for _ in range(3):
        door.server.play(stream(*map(data, HELLO), DONE))
        assert door.text() == "Hello"
    assert {request.connection for request in door.server.requests} == {0}


def test_a_connection_is_used_again_after_leaving_at_the_last_chunk(door: SyncDoor) -> None:
    for _ in range(3):
        door.server.play(stream(*map(data, HELLO), DONE))
        opened = door.open()
        for got in opened:
            if got.choices[0].finish_reason:
                break
        opened.close()
    assert {request.connection for request in door.server.requests} == {0}


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_gzip(door: SyncDoor, framing: str) -> None:
    door.server.play(sse(*HELLO, gzip=True, framing=framing))
    assert door.text() == "Hello"


def test_an_html_page_instead_of_a_stream(door: SyncDoor) -> None:
    door.server.play(reply(b"<html><title>Sign in</title></html>"))
    with pytest.raises(specclient.APIResponseValidationError, match="HTML page"):
        door.read()


def test_an_html_error_page(door: SyncDoor) -> None:
    door.server.play(reply(b"<html><head><title>502 Bad\nGateway</title></head></html>", 502))
    with pytest.raises(
        specclient.InternalServerError, match="an HTML page titled '502 Bad Gateway'"
    ) as caught:
        door.read(max_retries=0)
    assert caught.value.response.status_code == 502


def test_one_json_object_instead_of_a_stream(door: SyncDoor) -> None:
    door.server.play(reply(completion("Hello")))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_an_error_as_json_with_status_200_for_a_stream(door: SyncDoor) -> None:
    door.server.play(reply({"error": {"message": "no", "code": 400}, "choices": None}))
    with pytest.raises(specclient.BadRequestError, match="no"):
        door.read()


def test_a_giant_line_is_refused(door: SyncDoor) -> None:
    door.make(max_response_bytes=10_000)
    door.server.play(stream(b"data: " + b"x" * 50_000, Stall(), terminate=False))
    with pytest.raises(specclient.APIResponseValidationError, match="larger than 10000 bytes"):
        door.read()


def test_an_event_that_is_no_json(door: SyncDoor) -> None:
    door.server.play(sse(chunk("a"), b"data: {oops\n\n"))
    with pytest.raises(specclient.APIResponseValidationError, match="not JSON") as caught:
        door.read()
    assert caught.value.partial == "a"


def test_chunks_are_given_as_they_come(door: SyncDoor) -> None:
    import threading

    gate = threading.Event()
    door.server.play(
        stream(data(role()), data(chunk("a")), Until(gate), data(chunk("b")), data(finish()), DONE)
    )
    opened = iter(door.open())
    next(opened)
    assert next(opened).choices[0].delta.content == "a"
    gate.set()
    assert text_of(list(opened)) == "b"


def test_unknown_fields_and_odd_values_are_kept(door: SyncDoor) -> None:
    odd = chunk("a") | {"id": 7, "x_vendor": {"k": [1]}, "created": None}
    door.server.play(
        sse(odd, chunk("b") | {"choices": [{"index": 0, "delta": {"content": "b", "mood": "!"}}]}, finish())
    )
    first, second, _ = door.read()
    assert (first.id, first.x_vendor) == (7, {"k": [1]})
    assert second.choices[0].delta.mood == "!"


def test_reasoning_is_content_but_not_text(door: SyncDoor) -> None:
    door.server.play(sse(role(), chunk(reasoning_content="hmm"), chunk("a"), finish()))
    opened = door.read()
    assert text_of(opened) == "a"
    assert opened[1].choices[0].delta.reasoning_content == "hmm"
    timing = opened[-1].specclient.timing.client
    assert timing.first_content < timing.first_answer


def test_a_stream_error_before_content_is_asked_again(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(sse(role(), done=False), sse(*HELLO))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert [a.error for a in chunks[-1].specclient.attempts] == ["IncompleteStreamError", None]
    assert len(waits) == 1
    assert len([c for c in chunks if c.choices[0].delta.role]) == 0, "nothing of the first try was given"


def test_an_error_status_opens_no_stream(door: SyncDoor) -> None:
    door.server.play(error(404, "no such model"))
    with pytest.raises(specclient.NotFoundError, match="no such model"):
        door.open()


def test_a_repeated_stream_goes_on_where_it_broke_when_asked_to(door: SyncDoor, waits: list[float]) -> None:
    door.make(retry_after_content=True)
    door.server.play(
        stream(data(chunk("Hel")), data(chunk("lo")), Close(), terminate=False),
        sse(chunk("He"), chunk("llo, wo"), chunk("rld"), finish()),
    )
    chunks = door.read()
    assert text_of(chunks) == "Hello, world"
    assert [a.error for a in chunks[-1].specclient.attempts] == ["APIConnectionError", None]


def test_a_repeated_stream_that_differs_is_an_error(door: SyncDoor, waits: list[float]) -> None:
    door.make(retry_after_content=True)
    door.server.play(stream(data(chunk("Hel")), Close(), terminate=False), sse(chunk("Good day"), finish()))
    with pytest.raises(specclient.IncompleteStreamError, match="differs") as caught:
        door.read(max_retries=1)
    assert caught.value.partial == "Hel"


def test_half_a_surrogate_pair(door: SyncDoor) -> None:
    door.server.play(sse(b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n', chunk("a"), finish()))
    assert door.text() == "\ud83da"


@pytest.mark.parametrize("body", ["x", 5, [], [{"choices": []}], None, True])
def test_json_that_is_no_object_instead_of_a_stream(door: SyncDoor, body: Any) -> None:
    door.server.play(reply(body))
    with pytest.raises(specclient.APIResponseValidationError):
        door.read()
