"""B: what arrives below the level of events: bytes, bodies, lengths, encodings, redirects, odd statuses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from email.utils import formatdate
from time import time
from typing import Any

import pytest

import specclient
from tests.doors import SyncDoor, text_of
from tests.server import (
    DONE,
    Answer,
    Close,
    Stall,
    chunk,
    completion,
    data,
    error,
    finish,
    head,
    raw,
    reply,
    role,
    sse,
    stream,
)

TEXT = "日本😀 é"
EVENTS = b"".join(data(value) for value in (role(), chunk(TEXT), finish())) + DONE
PLAIN = json.dumps(completion()).encode()
BOM = b"\xef\xbb\xbf"
EVENT_STREAM = {"content-type": "text/event-stream", "connection": "close"}
JSON = {"content-type": "application/json", "connection": "close"}


def closed(content: bytes, headers: dict[str, str]) -> Answer:
    return raw(head(200, headers), content, Close())


def a_byte_each(content: bytes) -> Answer:
    return stream(*(content[at : at + 1] for at in range(len(content))))


def members(*parts: bytes) -> bytes:
    return b"".join(gzip.compress(part) for part in parts)


WHOLE: dict[str, Callable[[], Answer]] = {
    "a-byte-each": lambda: a_byte_each(EVENTS),
    "cr": lambda: stream(EVENTS.replace(b"\n", b"\r")),
    "cr-a-byte-each": lambda: a_byte_each(EVENTS.replace(b"\n", b"\r")),
    "mixed-ends": lambda: stream(EVENTS.replace(b"\n\n", b"\r\n\n")),
    "bom": lambda: stream(BOM + EVENTS),
    "bom-split": lambda: stream(BOM[:1], BOM[1:], EVENTS),
    "two-done": lambda: stream(EVENTS + DONE),
    "after-done": lambda: stream(EVENTS + data(chunk("LATE"))),
    "after-done-apart": lambda: stream(EVENTS, data(chunk("LATE"))),
    "retry-and-id": lambda: stream(b"retry: 3000\n\nid: 1\n\n" + EVENTS),
    "colons": lambda: stream(b"data: :\n\n:\n\ndata\n\n" + EVENTS),
    "blank-lines": lambda: stream(b"\n\n\r\n\r\n" + EVENTS),
    "nul-before": lambda: stream(b"\0\0data: {}\n\n" + EVENTS),
    "control-in-a-string": lambda: stream(b'data: {"note":"\0\t"}\n\n' + EVENTS),
    "duplicate-keys": lambda: stream(b'data: {"id":"a","id":"b","choices":[]}\n\n' + EVENTS),
    "json-type": lambda: closed(EVENTS, JSON),
    "json-type-a-byte": lambda: raw(
        head(200, JSON), *(EVENTS[i : i + 1] for i in range(9)), EVENTS[9:], Close()
    ),
    "json-type-comment": lambda: closed(b": hello\n\n" + EVENTS, JSON),
    "no-type": lambda: closed(EVENTS, {"connection": "close"}),
    "octets": lambda: closed(EVENTS, {"content-type": "application/octet-stream", "connection": "close"}),
    "length-too-long": lambda: closed(EVENTS, EVENT_STREAM | {"content-length": str(len(EVENTS) + 10)}),
    "gzip-members": lambda: closed(
        members(EVENTS[:50], EVENTS[50:51], EVENTS[51:]), EVENT_STREAM | {"content-encoding": "gzip"}
    ),
    "gzip-members-apart": lambda: raw(
        head(200, EVENT_STREAM | {"content-encoding": "x-gzip"}),
        members(EVENTS[:50]),
        members(EVENTS[50:]),
        Close(),
    ),
}


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_the_text_comes_whole(door: SyncDoor, answer: Callable[[], Answer]) -> None:
    door.server.play(answer())
    chunks = door.read()
    assert text_of([chunk for chunk in chunks if chunk.choices]) == TEXT
    assert chunks[-1].specclient.attempts[0].status == 200
    assert len(door.server.requests) == 1


BROKEN: dict[str, tuple[Callable[[], Answer], type[specclient.APIError], str, str]] = {
    "event-error": (
        lambda: stream(data(chunk("one ")), b'event: error\ndata: {"message":"boom"}\n\n'),
        specclient.APIError,
        "boom",
        "one ",
    ),
    "error-in-a-list": (
        lambda: sse(chunk("one "), {"error": [{"message": "boom"}]}),
        specclient.APIError,
        "boom",
        "one ",
    ),
    "chunked-cut": (
        lambda: stream(data(chunk("one ")), terminate=False),
        specclient.APIConnectionError,
        "failed",
        "one ",
    ),
    "length-too-short": (
        lambda: closed(EVENTS, EVENT_STREAM | {"content-length": str(len(EVENTS) - 150)}),
        specclient.IncompleteStreamError,
        "cut off",
        TEXT,
    ),
    "gzip-cut": (
        lambda: closed(gzip.compress(EVENTS)[:-60], EVENT_STREAM | {"content-encoding": "gzip"}),
        specclient.APIConnectionError,
        "cut off",
        "",
    ),
    "not-gzip": (
        lambda: closed(EVENTS, EVENT_STREAM | {"content-encoding": "gzip"}),
        specclient.APIResponseValidationError,
        "compressed body is damaged",
        "",
    ),
    "bad-utf8": (
        lambda: stream(data(chunk("one ")), b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n'),
        specclient.APIResponseValidationError,
        "not JSON",
        "one ",
    ),
    "too-deep": (
        lambda: stream(data(chunk("one ")), b"data: " + b"[" * 100_000 + b"\n\n"),
        specclient.APIResponseValidationError,
        "not JSON",
        "one ",
    ),
    "a-page": (
        lambda: reply(b"<html><title>Login</title>"),
        specclient.APIResponseValidationError,
        "HTML",
        "",
    ),
}


@pytest.mark.parametrize(("answer", "kind", "said", "partial"), BROKEN.values(), ids=BROKEN)
def test_what_came_of_a_broken_stream_is_kept(
    door: SyncDoor, answer: Callable[[], Answer], kind: type[specclient.APIError], said: str, partial: str
) -> None:
    door.server.play(answer())
    with pytest.raises(kind, match=said) as caught:
        door.read(max_retries=0)
    assert caught.value.partial.startswith(partial)
    assert "\n" not in str(caught.value)


CUT: dict[str, Callable[[], Answer]] = {
    "gzip": lambda: closed(gzip.compress(PLAIN)[:-20], JSON | {"content-encoding": "gzip"}),
    "by-length": lambda: closed(PLAIN, JSON | {"content-length": str(len(PLAIN) - 10)}),
    "by-close": lambda: closed(PLAIN[:-10], JSON),
    "in-a-string": lambda: closed(PLAIN[: PLAIN.index(b"Hel") + 2], JSON),
    "length-too-long": lambda: closed(PLAIN, JSON | {"content-length": str(len(PLAIN) + 10)}),
    "two-lengths": lambda: closed(PLAIN, JSON | {"content-length": "5", "Content-Length": "6"}),
    "negative-length": lambda: closed(PLAIN, JSON | {"content-length": "-1"}),
    "no-http": lambda: raw(b"hello", Close()),
    "nothing": lambda: raw(Close()),
    "a-switch": lambda: raw(b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\n\r\n", Close()),
}


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
def test_a_plain_answer_that_was_cut_off_is_asked_for_again(
    door: SyncDoor, waits: list[float], answer: Callable[[], Answer]
) -> None:
    door.server.play(answer(), reply(completion()))
    assert door.create().choices[0].message.content == "Hello"
    assert len(waits) == 1
    door.server.play(answer())
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.create(max_retries=0)
    assert not str(caught.value).endswith(": .")


NO_JSON: dict[str, bytes] = {
    "garbage-after": PLAIN + b"xx",
    "two-objects": PLAIN + b"\n" + PLAIN,
    "too-deep": b"[" * 100_000,
    "bad-utf8": PLAIN.replace(b"Hello", b"\xff"),
    "null": b"null",
    "text": b"overloaded",
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_json_is_not_asked_for_again(door: SyncDoor, waits: list[float], body: bytes) -> None:
    door.server.play(reply(body, headers={"content-type": "application/json"}))
    with pytest.raises(specclient.APIResponseValidationError):
        door.create()
    assert waits == []


ODD_JSON: dict[str, bytes] = {
    "bom": BOM + PLAIN,
    "utf-16": PLAIN.decode().encode("utf-16"),
    "nan": PLAIN.replace(b"1790000000", b"NaN"),
    "control": PLAIN.replace(b'"object": "chat.completion"', b'"object": "\t\0"'),
}


@pytest.mark.parametrize("body", ODD_JSON.values(), ids=ODD_JSON)
def test_odd_json_is_read(door: SyncDoor, body: bytes) -> None:
    door.server.play(reply(body, headers={"content-type": "application/json"}))
    assert door.create().choices[0].message.content == "Hello"


REASONS: dict[str, tuple[Callable[[int], Answer], str]] = {
    "br": (lambda status: reply(b"abcd", status, {"content-encoding": "br"}), "no reason given"),
    "not-gzip": (lambda status: reply(b"abcd", status, {"content-encoding": "gzip"}), "no reason given"),
    "stall": (lambda status: raw(head(status, {"content-length": "100"}), b"Slow", Stall()), "Slow"),
    "cut": (lambda status: raw(head(status, {"content-length": "100"}), b"Slow", Close()), "Slow"),
    "reset": (lambda status: raw(head(status, {"content-length": "100"}), Close(reset=True)), "no reason"),
    "octets": (lambda status: reply(bytes(range(256)), status), "256 characters that are no text"),
    "too-deep": (lambda status: reply(b"[" * 200_000, status), r"\[\["),
    "page": (lambda status: reply(b"\n<html><title>Bad Gateway</title>", status), "titled 'Bad Gateway'"),
    "angle": (lambda status: reply(b"a < b", status), "a < b"),
}


@pytest.mark.parametrize(("answer", "said"), REASONS.values(), ids=REASONS)
def test_a_reason_that_cannot_be_read_hides_no_status(
    door: SyncDoor,
    waits: list[float],
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[int], Answer],
    said: str,
) -> None:
    monkeypatch.setattr("specclient.core.wire.AFTER_FINISH_SECONDS", 0.2)
    door.server.play(answer(400))
    with pytest.raises(specclient.BadRequestError, match=said):
        door.create()
    door.server.play(answer(429), reply(completion()))
    assert door.create().choices[0].message.content == "Hello"
    assert len(waits) == 1


NOWHERE = (
    "http://[bad",
    "ftp://x/",
    "",
    " ",
    "http://x:99999/",
    "http://",
    "//",
    "javascript:x",
    "http://x:0/",
)


@pytest.mark.parametrize("location", NOWHERE)
def test_a_redirect_to_no_address_is_told(door: SyncDoor, location: str) -> None:
    door.server.play(reply({}, 307, {"location": location}))
    with pytest.raises(specclient.APIStatusError, match="that is not followed"):
        door.create()
    assert len(door.server.requests) == 1


def test_redirects(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(reply({}, 307, {"location": "/v1/caf\xe9?a=%20b"}), reply(completion()))
    door.create()
    assert door.server.requests[-1].target == "/v1/caf%E9?a=%20b"
    door.server.requests.clear()
    door.server.respond = lambda request: reply({}, 307, {"location": "/a" if request.path == "/b" else "/b"})
    with pytest.raises(specclient.APIStatusError, match="not followed"):
        door.create()
    assert len(door.server.requests) == 5


WAITS: dict[str, tuple[dict[str, str], float | None]] = {
    "negative": ({"retry-after": "-5"}, None),
    "nan": ({"retry-after": "nan"}, None),
    "infinite": ({"retry-after": "inf"}, None),
    "past": ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
    "no-date": ({"retry-after": "Wed, 99 Foo 2015 07:28:00 GMT"}, None),
    "year-0": ({"retry-after": "Thu, 01 Jan 0000 00:00:00 GMT"}, None),
    "unit": ({"retry-after": "1s"}, None),
    "two": ({"retry-after": "1, 2"}, None),
    "blank": ({"retry-after": ""}, None),
    "fraction": ({"retry-after": " 0.25 "}, 0.25),
    "ms": ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    "ms-nonsense": ({"retry-after-ms": "nan", "retry-after": "9"}, 9),
}


@pytest.mark.parametrize(("headers", "wait"), WAITS.values(), ids=WAITS)
def test_how_long_a_server_asks_to_wait(
    door: SyncDoor, waits: list[float], headers: dict[str, str], wait: float | None
) -> None:
    door.server.play(error(429, "slow", headers), reply(completion()))
    door.create()
    assert waits == [wait] if wait is not None else 0.3 < waits[0] <= 0.5


@pytest.mark.parametrize("value", ["121", "1e308", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_beyond_the_cap_is_told_at_once(door: SyncDoor, waits: list[float], value: str) -> None:
    door.server.play(error(429, "slow", {"retry-after": value}))
    with pytest.raises(specclient.RateLimitError) as caught:
        door.create()
    assert waits == []
    assert caught.value.retry_after > 120


def test_a_date_to_wait_for(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(
        error(503, "slow", {"retry-after": formatdate(time() + 30, usegmt=True)}), reply(completion())
    )
    door.create()
    assert 28 < waits[0] <= 30


def test_429_then_a_reset_then_an_answer(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(error(429, "slow"), raw(Close(reset=True)), reply(completion()))
    report = door.create().specclient
    assert [attempt.status for attempt in report.attempts] == [429, None, 200]
    door.server.play(error(429, "slow"), raw(Close(reset=True)))
    with pytest.raises(
        specclient.APIConnectionError, match=r"failed: .*(reset|RemoteProtocolError|disconnected)"
    ):
        door.create(max_retries=1)


def choice(index: Any, text: Any, reason: str | None = None) -> dict[str, Any]:
    return {**chunk(), "choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]}


def test_choices_that_alternate_stay_apart(door: SyncDoor) -> None:
    door.server.play(
        sse(*(choice(i % 2, t) for i, t in enumerate("abcd")), choice(1, "", "stop"), choice(0, "", "stop"))
    )
    found = ["", ""]
    for got in door.read(n=2):
        for one in got.choices:
            found[one.index] += one.delta.content
    assert found == ["ac", "bd"]


@pytest.mark.parametrize("index", ["0", -1, 10**20, [1], None])
def test_an_odd_index_costs_no_text(door: SyncDoor, index: Any) -> None:
    door.server.play(sse(choice(index, "x"), finish()))
    assert text_of(door.read()) == "x"
