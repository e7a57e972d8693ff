"""Events that are recognised as like the one before them mean what they would mean if they were read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient.client.chunks import maker
from specclient.config.target import Timeout
from specclient.core.alike import Alike, filled
from specclient.core.body import Body
from specclient.core.exchange import DONE
from specclient.core.timeline import Timeline
from specclient.core.wire import Wire
from specclient.types import ChatCompletionChunk

HEADERS = {"content-type": "text/event-stream"}


def event(content: Any, **others: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": content}, "logprobs": None, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], **others}


def body(limit: int = 1 << 30) -> Body:
    wire = Wire(Timeout(), Timeline())
    return Body(HEADERS, streamed=True, limit=limit, wire=wire)


def whole(objects: list[Any]) -> list[Any]:
    return [filled(obj) if isinstance(obj, tuple) else obj for obj in objects]


texts = st.text(st.one_of(st.sampled_from('"\\{}:,\n\r\u2028 ab'), st.characters(codec="utf-8")), max_size=12)
odd = st.sampled_from(
    [
        event("x", usage={"total_tokens": 1}),
        event("x", usage=None),
        event("x", provider="p"),
        event(None),
        event(["x"]),
        event("x", choices=[]),
        event("x", id="d"),
        event("x", note={"content": "y"}),
        {"content": "x", **event("y")},
        event("x", error={"message": "m"}),
    ]
)
events = st.lists(
    st.one_of(texts.map(event), st.builds(lambda a, b: event(a, obfuscation=b), texts, texts), odd),
    max_size=12,
)


@given(events, st.booleans(), st.booleans(), st.integers(1, 200))
def test_a_stream_reads_as_its_events_say(
    sent: list[dict[str, Any]], ascii_only: bool, compact: bool, step: int
) -> None:
    separators = (",", ":") if compact else None
    said = [json.dumps(each, ensure_ascii=ascii_only, separators=separators).encode() for each in sent]
    framed = [b"data: " + each + b"\n\n" for each in said]
    raw = b"".join(framed)
    cut = [raw[place : place + step] for place in range(0, len(raw), step)]
    for blocks in (framed, cut, [raw]):
        reader = body()
        assert whole([obj for block in blocks for obj in reader.feed(block)]) == sent


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=6))
def test_what_is_no_string_is_read_in_full(pieces: list[bytes]) -> None:
    before, behind = json.dumps(event("@")).encode().split(b"@")
    alike = Alike()
    alike.learn(before + b"x" + behind, event("x"))
    for piece in pieces:
        data = before + piece + behind
        try:
            said = json.loads(data)
        except ValueError:
            said = None
        found = alike.piece(data)
        assert found is None or filled(found) == said == event(found[1])


def test_most_events_of_a_stream_are_alike() -> None:
    reader = body()
    sent = [event(f"{number} ", obfuscation="x" * number) for number in range(20)]
    read = [reader.feed(b"data: " + json.dumps(each).encode() + b"\n\n")[0] for each in sent]
    assert [isinstance(obj, tuple) for obj in read] == [False] + [True] * 19
    assert whole(read) == sent


def test_an_end_behind_events_that_are_alike() -> None:
    reader = body()
    lines = [b"data: " + json.dumps(event(text)).encode() + b"\n\n" for text in "abc"]
    assert whole(reader.feed(b"".join(lines) + b"data: [DONE]\n\n")) == [*map(event, "abc"), DONE]


@pytest.mark.parametrize(
    "like",
    [
        event("x"),
        event("x", obfuscation="p", system_fingerprint=None, created=3),
        event("x", created="not a number"),
        {**event("x"), "choices": [{"index": 0, "delta": {"content": "x", "role": "assistant", "own": 1}}]},
        {**event("x"), "choices": [{"delta": {"content": "x", "role": 5}}]},
    ],
)
def test_a_copied_chunk_is_as_one_that_was_checked(like: dict[str, Any]) -> None:
    padding = "q" if "obfuscation" in like else None
    pieces = [(like, text, padding) for text in ("one", "two")]
    copied, checked = maker(ChatCompletionChunk), maker(ChatCompletionChunk)
    for piece in pieces:
        ours, theirs = copied(piece, None), checked(filled(piece), None)
        assert ours == theirs
        assert repr(ours) == repr(theirs)
        assert ours.to_json() == theirs.to_json()
        assert ours.model_fields_set == theirs.model_fields_set
        assert ours.model_extra == theirs.model_extra


def test_copied_chunks_share_nothing_that_can_change() -> None:
    make = maker(ChatCompletionChunk)
    like = event("x")
    first, second = make((like, "one", None), None), make((like, "two", None), None)
    first.choices[0].delta.content = "changed"
    first.choices[0].delta.role = "assistant"
    first.choices[0].own = 1  # type: ignore[attr-defined]
    first.choices.append(first.choices[0])
    first.created = 5
    assert second.to_dict() == filled((like, "two", None))
    assert make((like, "three", None), None).to_dict() == filled((like, "three", None))
