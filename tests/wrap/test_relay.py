"""The relay passes a stream byte for byte, in whatever pieces it comes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient.core import sse
from specclient.middleware.relay import EventRelay, data_of, spliced
from tests import server

REPORT = b'{"target":"t"}'


class Listening:
    """Takes note of what the relay tells, and hides what it is told to."""

    def __init__(self, hide: set[str] | None = None, content_known: bool = False) -> None:
        self.events: list[dict] = []
        self.counted = 0
        self.said: list[str] = []
        self._hide = hide or set()
        self._content_known = content_known

    def plain_content(self, raw: bytes) -> bytes | None:
        known = self._content_known and b'"content"' in raw and b'"finish_reason": null' in raw
        self.counted += known
        return raw if known else None

    def event(self, data: dict) -> dict | None:
        self.events.append(data)
        if self._hide.isdisjoint(data):
            return data
        left = {name: value for name, value in data.items() if name not in self._hide}
        return left if left.get("choices") else None

    def unreadable(self) -> None:
        self.said.append("unreadable")

    def completed(self) -> bytes | None:
        self.said.append("completed")
        return REPORT

    def ran_out(self) -> bytes | None:
        self.said.append("ran_out")
        return REPORT

    def failed(self, error: BaseException) -> None:
        self.said.append(type(error).__name__)

    def closed(self) -> None:
        self.said.append("closed")


def relayed(stream: bytes, at: list[int] | None = None, listener: Listening | None = None) -> bytes:
    relay = EventRelay(listener or Listening())
    out = b"".join(relay.feed(block) for block in server.split(stream, sorted(set(at or []))))
    return out + relay.end()


def a_stream(ending: bytes = b"\n", extra: bytes = b"") -> bytes:
    events = [
        server.role(),
        server.chunk("Hé 🙂 \u2028 x"),
        server.chunk("y"),
        server.finish(),
        server.usage_chunk(),
    ]
    text = extra + b"".join(server.data(event) for event in events) + server.DONE
    return text.replace(b"\n", ending)


def without_report(stream: bytes) -> bytes:
    return stream.replace(b',"specclient":' + REPORT, b"", 1)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    "extra", [b"", b": keep-alive\n\n", b"\xef\xbb\xbf", b"retry: 3000\n\n", b"event: x\nid: 7\n"]
)
@given(at=st.lists(st.integers(0, 1200)))
def test_every_byte_passes_however_it_is_cut(ending: bytes, extra: bytes, at: list[int]) -> None:
    stream = a_stream(ending, extra)
    listener = Listening()
    out = relayed(stream, at, listener)
    assert without_report(out) == stream
    assert out != stream
    assert listener.said == ["completed"]
    assert [event["choices"][0]["delta"] for event in listener.events if event["choices"]][1] == {
        "content": "Hé 🙂 \u2028 x"
    }


def test_the_report_is_in_the_last_object() -> None:
    events = sse.SSEReader().feed(relayed(a_stream()))
    last = json.loads(events[-2][1])
    assert last["usage"]["total_tokens"] == 7
    assert last["specclient"] == {"target": "t"}
    assert events[-1][1] == b"[DONE]"
    assert all(b"specclient" not in data for _, data in events[:-2])


def test_without_usage_the_report_is_in_the_chunk_with_the_finish_reason() -> None:
    stream = server.data(server.chunk("a")) + server.data(server.finish()) + server.DONE
    events = sse.SSEReader().feed(relayed(stream))
    assert json.loads(events[1][1])["specclient"] == {"target": "t"}


def test_content_is_not_held_back() -> None:
    relay = EventRelay(Listening())
    first = server.data(server.chunk("a"))
    assert relay.feed(first) == first
    second = server.data(server.chunk("b"))
    assert relay.feed(second[:9]) == b""
    assert relay.feed(second[9:]) == second


def test_known_content_is_counted_and_not_parsed() -> None:
    listener = Listening(content_known=True)
    stream = a_stream()
    assert without_report(relayed(stream, [], listener)) == stream
    assert listener.counted == 3
    assert len(listener.events) == 2


def test_what_was_not_asked_for_is_taken_out_and_the_rest_stays() -> None:
    stream = a_stream()
    out = relayed(stream, [40, 300], Listening(hide={"usage"}))
    usage = server.data(server.usage_chunk())
    assert without_report(out) == stream.replace(usage, b"")
    assert b'"finish_reason": "stop"}],' not in out.split(b'"specclient"')[1]


def test_a_field_taken_out_of_an_event_leaves_its_content() -> None:
    event = server.chunk("a") | {"timings": {"x": 1}}
    out = relayed(server.data(event) + server.DONE, [], Listening(hide={"timings"}))
    first = json.loads(sse.SSEReader().feed(out)[0][1])
    assert first == server.chunk("a")


def test_an_end_without_done_is_told_and_the_rest_is_passed_on() -> None:
    listener = Listening()
    stream = server.data(server.chunk("a")) + b"data: {unfinished"
    assert relayed(stream, [], listener) == stream
    assert listener.said == ["ran_out"]


def test_what_comes_after_done_passes() -> None:
    stream = a_stream() + b"data: {}\n\n: bye\n\n"
    assert without_report(relayed(stream)) == stream


def test_data_that_is_no_object_passes() -> None:
    stream = b"data: 12\n\ndata: nonsense\n\ndata:\n\n" + a_stream()
    assert without_report(relayed(stream)) == stream


def test_an_endless_line_passes_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specclient.middleware.relay.MAX_EVENT_BYTES", 100)
    listener = Listening()
    relay = EventRelay(listener)
    line = b"data: " + b"x" * 200
    assert relay.feed(line) == line
    assert relay.feed(b"yyy\n\n") == b"yyy\n\n"
    assert relay.end() == b""


def test_an_event_over_several_lines_is_read() -> None:
    assert data_of(b'data: {"a":\r\ndata: 1}\r\n\r\n') == b'{"a":\n1}'
    assert json.loads(spliced(b'{"a": {"b": 1} }\n', b"2")) == {"a": {"b": 1}, "specclient": 2}


def test_an_object_without_fields_takes_a_report() -> None:
    assert spliced(b"{ }\n", b"2") == b'{ "specclient":2}\n'


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("first", [b"", b"\xef\xbb\xbf"])
def test_a_brace_behind_the_data_is_not_taken_for_the_objects(ending: bytes, first: bytes) -> None:
    event = server.data(server.finish()).removesuffix(b"\n") + b": {note}\nid: }\n\n"
    out = relayed(first + (event + server.DONE).replace(b"\n", ending))
    assert json.loads(sse.SSEReader().feed(out)[0][1])["specclient"] == {"target": "t"}
    assert without_report(out) == first + (event + server.DONE).replace(b"\n", ending)


def test_an_empty_block_between_two_line_ends_holds_nothing_back() -> None:
    relay = EventRelay(Listening())
    event = server.data(server.chunk("a"))
    assert [relay.feed(block) for block in (event[:-1], b"", event[-1:])] == [b"", b"", event]


def test_empty_data_does_not_overtake_what_waits() -> None:
    stream = server.data(server.finish()) + b"data: \n\n" + server.data(server.usage_chunk()) + server.DONE
    out = relayed(stream)
    assert without_report(out) == stream
    assert b'"specclient"' in out.split(b"data: \n\n")[1]
