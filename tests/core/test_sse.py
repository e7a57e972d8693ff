"""Bytes to events, however the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specclient.core.sse import EventTooLarge, SSEReader


def read(*blocks: bytes) -> list[tuple[str, bytes]]:
    reader = SSEReader()
    return [event for block in blocks for event in reader.feed(block)]


def payloads(*blocks: bytes) -> list[bytes]:
    return [data for _, data in read(*blocks)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_closes_a_line(end: bytes) -> None:
    raw = end.join([b"data: a", b"", b"data: b", b"", b""])
    assert payloads(raw) == [b"a", b"b"]
    assert payloads(*[raw[i : i + 1] for i in range(len(raw))]) == [b"a", b"b"]


def test_a_carriage_return_closes_its_event_without_waiting_for_the_next_byte() -> None:
    assert payloads(b"data: a\r\r") == [b"a"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b": OPENROUTER PROCESSING\n\ndata: a\n\n", [b"a"]),
        (b"retry: 3000\n\ndata: a\n\n", [b"a"]),
        (b"id: 7\n\nevent: ping\n\ndata: a\n\n", [b"a"]),
        (b"data:\n\ndata\n\ndata: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        ('data: "\u2028\u0085\x0b\x0c\u2029"\n\n'.encode(), ['"\u2028\u0085\x0b\x0c\u2029"'.encode()]),
        (b"data: :\n\n", [b":"]),
        (b"data: a\n", []),
    ],
)
def test_lines(raw: bytes, expected: list[bytes]) -> None:
    assert payloads(raw) == expected
    assert payloads(*[raw[i : i + 1] for i in range(len(raw))]) == expected


def test_the_event_name_belongs_to_one_event() -> None:
    assert read(b"event: error\ndata: a\n\ndata: b\n\n") == [("error", b"a"), ("", b"b")]


def test_an_emoji_survives_any_cut() -> None:
    raw = 'data: "😀"\n\n'.encode()
    for cut in range(len(raw)):
        assert payloads(raw[:cut], raw[cut:]) == ['"😀"'.encode()]


def test_an_unfinished_event_is_known_as_such() -> None:
    reader = SSEReader()
    reader.feed(b"data: a\n")
    assert reader.pending
    reader.feed(b"\n")
    assert not reader.pending


@pytest.mark.parametrize("block", [b"x" * 64, b"data: 123456\n"])
def test_a_giant_event_is_refused(block: bytes) -> None:
    reader = SSEReader(max_event_bytes=1024)

    def feed(times: int) -> None:
        for _ in range(times):
            reader.feed(block)

    feed(1024 // len(block))
    with pytest.raises(EventTooLarge):
        feed(100)


lines = st.sampled_from(
    [b"data: x", b"data:y", b"data", b"", b"", b": note", b"event: e", "data: 😀\u2028".encode(), b"id: 1"]
)


def test_an_empty_block_between_cr_and_lf_is_nothing() -> None:
    assert read(b"data: a\r", b"", b"\ndata: b\r\n\r\n") == [("", b"a\nb")]


@settings(deadline=None)
@given(
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=30),
    st.lists(st.integers(0, 300), max_size=10),
)
def test_cuts_never_matter(pieces: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    raw = b"".join(line + end for line, end in pieces)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    blocks = [raw[a:b] for a, b in itertools.pairwise(edges)]
    assert read(*blocks) == read(raw)


def test_a_whole_event_in_a_block_after_a_carriage_return() -> None:
    assert payloads(b"data: a\r\r", b"data: b\n\n", b"\ndata: c\n\n") == [b"a", b"b", b"c"]
    assert payloads(b"data: a\r", b"\ndata: b\n\n", b"data: \n\n", b"data: c\n\n") == [b"a\nb", b"c"]


def test_a_whole_event_in_a_block_that_is_too_large() -> None:
    reader = SSEReader(max_event_bytes=16)
    reader.feed(b"\n")
    with pytest.raises(EventTooLarge):
        reader.feed(b"data: 12345678901234567890\n\n")
