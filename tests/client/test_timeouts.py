"""Every limit by itself. The limits are short and nothing is measured: a test that hangs fails by timeout."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

import specclient
from specclient.config import Timeout
from tests.doors import SyncDoor, text_of
from tests.server import (
    DONE,
    Stall,
    Step,
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
    stream,
)

OFF: dict[str, Any] = {
    "connect": None,
    "write": None,
    "pool": None,
    "first_byte": None,
    "first_content": None,
    "content_idle": None,
}


def only(**limits: float) -> Timeout:
    return Timeout(**{**OFF, **limits})


def failed(
    door: SyncDoor, timeout: Timeout, *, stream: bool = True, retries: int = 0
) -> specclient.APITimeoutError:
    ask = door.read if stream else door.create
    with pytest.raises(specclient.APITimeoutError) as caught:
        ask(timeout=timeout, max_retries=retries)
    assert caught.value.report is not None
    return caught.value


@pytest.mark.parametrize("streamed", [True, False])
def test_first_byte(door: SyncDoor, streamed: bool) -> None:
    door.server.play(raw(Stall()))
    assert failed(door, only(first_byte=0.2), stream=streamed).limit == "first_byte"


def test_first_content(door: SyncDoor) -> None:
    door.server.play(stream(data(role()), Stall()))
    found = failed(door, only(first_content=0.2))
    assert (found.limit, found.partial) == ("first_content", "")


@pytest.mark.parametrize("noise", [b": keep-alive\n\n", data(role()), data({"choices": []}), b"\n"])
def test_keep_alives_and_empty_frames_are_no_content(door: SyncDoor, noise: bytes) -> None:
    steps = [step for _ in range(40) for step in (noise, Wait(0.05))]
    door.server.play(stream(*steps, Stall()), stream(data(chunk("a")), *steps, Stall()))
    assert failed(door, only(first_content=0.3)).limit == "first_content"
    found = failed(door, only(content_idle=0.3))
    assert (found.limit, found.partial) == ("content_idle", "a")


def test_a_stall_in_the_middle(door: SyncDoor) -> None:
    door.server.play(stream(data(chunk("Hel")), data(chunk("lo")), Stall()))
    found = failed(door, only(content_idle=0.2), retries=2)
    assert (found.limit, found.partial) == ("content_idle", "Hello")
    assert len(door.server.requests) == 1


def alone(*texts: str) -> list[Step]:
    """Each chunk in a packet of its own, after the one before was read."""
    return [step for text in texts for step in (data(chunk(text)), Wait(0.03))]


@pytest.mark.parametrize("idle", [0.2, 1.2])
def test_a_stall_after_chunks_that_came_alone(door: SyncDoor, idle: float) -> None:
    door.server.play(stream(*alone(*"abcdefgh"), Stall()))
    found = failed(door, only(content_idle=idle))
    assert (found.limit, found.partial) == ("content_idle", "abcdefgh")


def test_keep_alives_after_chunks_that_came_alone(door: SyncDoor) -> None:
    noise = [step for _ in range(40) for step in (b": keep-alive\n\n", Wait(0.05))]
    door.server.play(stream(*alone(*"abcd"), *noise, Stall()))
    found = failed(door, only(content_idle=0.3))
    assert (found.limit, found.partial) == ("content_idle", "abcd")


def test_chunks_that_come_alone_without_any_limit(door: SyncDoor) -> None:
    door.server.play(stream(*alone(*"abcd"), data(finish()), DONE))
    assert door.text(timeout=only()) == "abcd"


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("alone_first", [False, True], ids=["", "alone"])
def test_what_came_while_nobody_asked_is_not_late(door: SyncDoor, framing: str, alone_first: bool) -> None:
    sent = alone(*"abcdefgh") if alone_first else [data(chunk(text)) for text in "abcdefgh"]
    door.server.play(stream(*sent, Wait(0.1), data(chunk("i")), data(finish()), DONE, framing=framing))
    text = ""
    for each in door.open(timeout=only(content_idle=0.3), max_retries=0):
        text += text_of([each])
        if text in ("abc", "abcdefgh"):
            time.sleep(0.5)
    assert text == "abcdefghi"


def test_what_came_while_nobody_asked_and_holds_nothing(door: SyncDoor) -> None:
    noise = [step for _ in range(100) for step in (b": keep-alive\n\n", Wait(0.01))]
    door.server.play(stream(data(chunk("a")), *noise, Stall()))
    opened = iter(door.open(timeout=only(content_idle=0.2), max_retries=0))
    assert text_of([next(opened)]) == "a"
    time.sleep(0.4)
    with pytest.raises(specclient.APITimeoutError) as caught:
        next(opened)
    assert caught.value.limit == "content_idle"


def test_a_slow_start_is_not_a_stall(door: SyncDoor) -> None:
    door.server.play(stream(data(role()), Wait(0.6), data(chunk("a")), data(finish()), DONE))
    assert door.text(timeout=only(first_content=30, content_idle=0.3)) == "a"


def test_total_covers_retries(door: SyncDoor) -> None:
    door.server.play(error(500, "no"), raw(Stall()))
    assert failed(door, only(total=1.2), stream=False, retries=5).limit == "total"
    assert len(door.server.requests) == 2


def test_total_of_a_stream_that_never_idles(door: SyncDoor) -> None:
    door.server.play(stream(*[step for _ in range(100) for step in (data(chunk("a")), Wait(0.02))], Stall()))
    found = failed(door, only(total=0.4))
    assert found.limit == "total"
    assert set(found.partial) == {"a"}


@pytest.mark.parametrize("streamed", [True, False])
def test_a_body_that_stalls(door: SyncDoor, streamed: bool) -> None:
    door.server.play(
        raw(head(200, {"content-type": "application/json", "content-length": "99"}), b'{"a"', Stall())
    )
    assert failed(door, only(content_idle=0.2), stream=streamed).limit == "content_idle"


def test_blanks_before_a_plain_body_are_no_content(door: SyncDoor) -> None:
    steps = [step for _ in range(40) for step in (b"1\r\n\n\r\n", Wait(0.05))]
    headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
    door.server.play(raw(head(200, headers), *steps, Stall()))
    assert failed(door, only(first_content=0.3), stream=False).limit == "first_content"


def test_timeouts_are_asked_again_before_content(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(raw(Stall()), reply(completion()))
    report = door.create(timeout=only(first_byte=0.2)).specclient
    assert [a.error for a in report.attempts] == ["APITimeoutError", None]


def test_after_the_finish_reason_the_end_is_not_waited_for_long(door: SyncDoor) -> None:
    door.server.play(stream(data(chunk("a")), data(finish()), Stall()))
    chunks = door.read(timeout=only(content_idle=0.3))
    assert text_of(chunks) == "a"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].specclient.attempts[0].error is None


def test_connect(door: SyncDoor) -> None:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    fillers = [socket.socket() for _ in range(8)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(full.getsockname())
    door.make(base_url=f"http://127.0.0.1:{full.getsockname()[1]}")
    try:
        found = failed(door, only(connect=0.2), stream=False)
    finally:
        for opened in (*fillers, full):
            opened.close()
    assert found.limit == "connect"


def test_pool(door: SyncDoor) -> None:
    door.make(max_connections=1)
    door.server.play(stream(data(chunk("a")), Stall()))
    opened = door.open()
    assert next(iter(opened)).choices[0].delta.content == "a"
    assert failed(door, only(pool=0.2), stream=False).limit == "pool"
    assert failed(door, only(pool=30, total=0.2), stream=False).limit == "total"
    opened.close()


def test_what_timeout_takes() -> None:
    import httpx

    assert Timeout.of(3).content_idle == 3
    assert Timeout.of(30).connect == 5
    assert Timeout.of(None).first_byte is None
    assert Timeout.of({"total": 9}).total == 9
    assert Timeout.of(httpx.Timeout(7, connect=2)).model_dump() == {
        "connect": 2,
        "write": 7,
        "pool": 7,
        "first_byte": 7,
        "first_content": 7,
        "content_idle": 7,
        "total": None,
    }
