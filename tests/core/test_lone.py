"""Reads that are known by their size and their ends mean what they would mean if they were read in full."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient.core.chunked import ChunkJoiner
from specclient.errors import APIResponseValidationError
from tests.core.test_alike import body, event, events, whole

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Reading:
    """Reads a stream as an exchange does; `known` counts the reads that were known."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.body = body(limit)
        self.joiner = ChunkJoiner()
        self.joiner.feed(HEAD)
        self.joiner.parsing = False
        self.known = 0
        self._piece: Any = None

    def read(self, data: bytes) -> list[Any]:
        if self._piece is not None and (piece := self._piece(data)) is not None:
            self.known += 1
            return [piece]
        self._piece = None
        content = self.joiner.take(data)
        if not content:
            return []
        objects = self.body.feed(content)
        self._piece = self.body.lone(data, content, objects)
        return objects


def http_chunk(content: bytes, size_line: bytes = b"%x") -> bytes:
    return size_line % len(content) + b"\r\n" + content + b"\r\n"


def framed(value: Any, before: bytes = b"data: ", end: bytes = b"\n\n") -> bytes:
    return before + json.dumps(value, ensure_ascii=False).encode() + end


@given(events, st.sampled_from([b"%x", b"%X", b"00%x;a=b "]), st.integers(1, 300), st.booleans())
def test_any_stream_in_any_reads(sent: list[dict[str, Any]], size_line: bytes, step: int, lone: bool) -> None:
    reads = [http_chunk(framed(each), size_line) for each in sent]
    if not lone:
        raw = b"".join(reads)
        reads = [raw[place : place + step] for place in range(0, len(raw), step)]
    reading = Reading()
    assert whole([obj for data in reads for obj in reading.read(data)]) == sent


@pytest.mark.parametrize("size_line", [b"%x", b"%X", b"00%x", b"%x;extension=1"])
@pytest.mark.parametrize(
    ("before", "end"), [(b"data: ", b"\n\n"), (b"data:", b"\r\n\r\n"), (b": beat\n\ndata: ", b"\n\n")]
)
def test_lone_events_are_known(size_line: bytes, before: bytes, end: bytes) -> None:
    reading = Reading()
    sent = [event(f"w{number % 10} ", obfuscation="x" * (number % 4)) for number in range(100)]
    read = [obj for each in sent for obj in reading.read(http_chunk(framed(each, before, end), size_line))]
    assert whole(read) == sent
    assert reading.known >= 90


@given(st.binary(max_size=8))
def test_what_stands_in_a_texts_place(written: bytes) -> None:
    """Any bytes: only what is one JSON string is known, whatever its size."""
    before, behind = json.dumps(event("@")).encode().split(b"@")
    reading = Reading()
    for text in (b"a", *(b"a" * size for size in range(1, 9)), b"b"):
        reading.read(http_chunk(b"data: " + before + text + behind + b"\n\n"))
    known = reading.known
    data = before + written + behind
    try:
        said = json.loads(data)
    except ValueError:
        said = None
    try:
        read = reading.read(http_chunk(b"data: " + data + b"\n\n"))
    except APIResponseValidationError:
        read = []
    if reading.known > known:
        assert whole(read) == [said]


WRITTEN = [
    "a",
    "b",
    "é",
    " w",
    "😀",
    '"',
    "\\",
    "\\n",
    '\\"',
    "\\\\",
    "\\u0041",
    "\\ud800",
    "\u2028",
    "\x7f",
    "\t",
    'x","y":"',
]
"""What may stand between the quotes of a text, rightly or not."""
FRAMES = [
    ("data: ", "\n\n"),
    ("data:", "\r\n\r\n"),
    (": beat\ndata: ", "\n\n"),
    ("id: 1\ndata: ", "\n\n"),
    ("event: x\ndata: ", "\n\n"),
    ("data: ", "\n"),
    ("\ufeffdata: ", "\n\n"),
]


@st.composite
def written(draw: st.DrawFn) -> list[bytes]:
    """Events as bytes: most differ in their texts alone, some in what looks much like it."""
    padded, frame = draw(st.booleans()), draw(st.sampled_from(FRAMES))
    found = []
    for _ in range(draw(st.integers(3, 16))):
        text, padding = draw(st.sampled_from(WRITTEN)), draw(st.sampled_from(WRITTEN))
        said = draw(st.sampled_from([""] * 9 + ['"usage": {"a": 1}, ', '"created": NaN, ', '"id": "cc", ']))
        content = draw(
            st.sampled_from(['"content": "@"'] * 9 + ['"content": "z", "content": "@"', '"content":"@" '])
        )
        choice = '{"index": 0, "delta": {' + content.replace("@", text) + '}, "finish_reason": null}'
        behind = f', "obfuscation": "{padding}"' if padded else ""
        before, end = frame if draw(st.integers(0, 9)) else draw(st.sampled_from(FRAMES))
        found.append(f'{before}{{"id": "c", {said}"choices": [{choice}]{behind}}}{end}'.encode())
    return found


@given(written(), st.integers(0, 400))
def test_what_is_known_is_what_a_full_reading_gives(sent: list[bytes], cut: int) -> None:
    reads = [http_chunk(each) for each in sent]
    if cut:  # some reads hold a part of a chunk
        reads = [part for each in reads for part in (each[:cut], each[cut:]) if part]
    found, full = [], []
    reading, reader, joiner = Reading(), body(), ChunkJoiner()
    reader._alike._vain = 1 << 30  # it has given up: every event is read
    joiner.feed(HEAD)
    joiner.parsing = False
    for data in reads:
        found += whole(reading.read(data))
        full += whole(reader.feed(joiner.take(data)))
        assert repr(found) == repr(full)
        assert repr(reading.body.fault) == repr(reader.fault)
        if reader.fault is not None:
            break


def test_a_size_line_that_lies_is_not_known() -> None:
    reading = Reading()
    for number in range(5):
        reading.read(http_chunk(framed(event(f"w{number}"))))
    content = framed(event("w6"))
    known = reading.known
    assert whole(reading.read(b"%x\r\n" % (len(content) + 2) + content + b"\r\n")) == [event("w6")]
    assert reading.known == known
    assert reading.read(b"\r\n" + http_chunk(framed(event("w7")))[:9]) == [], "held back: a chunk has begun"


def test_known_reads_count_for_the_limit() -> None:
    size = len(framed(event("w1")))
    reading = Reading(limit=20 * size)
    for number in range(20):
        reading.read(http_chunk(framed(event(f"w{number % 10}"))))
    assert reading.known == 18
    with pytest.raises(APIResponseValidationError, match="max_response_bytes"):
        reading.read(http_chunk(framed(event("w1"))))


def test_what_is_known_stays_small() -> None:
    reading = Reading()
    for number in range(2000):
        reading.read(http_chunk(framed(event("x" * (number % 500 + 1)))))
    assert len(reading.body._lone._heads) <= 64
