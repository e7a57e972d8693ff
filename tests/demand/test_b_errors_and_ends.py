"""B: errors inside answers that began well, and streams that end as they should not."""

from __future__ import annotations

from typing import Any

import pytest

import specclient
from tests.demand.faults import B34, ENDLESS, ERRORS, LAST, THREE
from tests.doors import SyncDoor, text_of
from tests.server import completion, data, reply, role, sse, stream


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


@pytest.mark.parametrize("broken", ENDLESS.values(), ids=ENDLESS)
def test_an_end_without_a_mark_is_no_answer(door: SyncDoor, broken: Any) -> None:
    door.server.play(broken())
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.read()
    assert caught.value.partial == "one two "


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
