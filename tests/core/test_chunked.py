"""Whatever the joiner hands on means the same to an HTTP parser as what it was given."""

from __future__ import annotations

import itertools

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specclient.core.chunked import ChunkJoiner

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def parsed(blocks: list[bytes]) -> tuple[bytes, str]:
    """The body and how it ended, as h11 sees it."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    body = b""
    try:
        for block in blocks:
            connection.receive_data(block)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    body += event.data
                if isinstance(event, h11.EndOfMessage):
                    return body, f"end {event.headers.raw_items()}"
                if event is h11.PAUSED:
                    break
        return body, "open"
    except h11.RemoteProtocolError as error:
        return body, f"error {type(error).__name__}"


def joined(blocks: list[bytes]) -> list[bytes]:
    joiner = ChunkJoiner()
    return [out for block in blocks if (out := joiner.feed(block))]


def cut(raw: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted({min(c, len(raw)) for c in cuts} - {0, len(raw)}), len(raw)]
    return [raw[a:b] for a, b in itertools.pairwise(edges) if a < b]


def chunk(data: bytes, extension: bytes = b"", upper: bool = False) -> bytes:
    size = b"%x" % len(data)
    return (size.upper() if upper else size) + extension + b"\r\n" + data + b"\r\n"


bodies = st.lists(
    st.builds(
        chunk, st.binary(min_size=1, max_size=40), st.sampled_from([b"", b"", b";a=b", b" "]), st.booleans()
    ),
    max_size=12,
).map(b"".join)
endings = st.sampled_from(
    [b"0\r\n\r\n", b"0;x\r\n\r\n", b"0\r\nTrailer: 1\r\n\r\n", b"", b"zz\r\n", b"5\r\nabcdeXX", b"\r\n"]
)


@settings(deadline=None, max_examples=400)
@given(
    bodies,
    endings,
    st.lists(st.integers(1, 900), max_size=12),
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]),
)
def test_the_meaning_is_the_same(body: bytes, ending: bytes, cuts: list[int], before: bytes) -> None:
    blocks = cut(before + HEAD + body + ending, cuts)
    assert parsed(joined(blocks)) == parsed(blocks)


@settings(deadline=None, max_examples=400)
@given(bodies, endings, st.lists(st.integers(1, 900), max_size=12), st.booleans())
def test_content_taken_out_leaves_the_end_to_the_parser(
    body: bytes, ending: bytes, cuts: list[int], head_alone: bool
) -> None:
    blocks = cut(body + ending, cuts)
    joiner = ChunkJoiner()
    given = [joiner.feed(HEAD)] if head_alone else [joiner.feed(HEAD + blocks.pop(0) if blocks else HEAD)]
    taken = b""
    for block in blocks:
        joiner.parsing = False  # the parser has given all that it was fed
        if joiner.takes_content:
            taken += joiner.take(block)
            given.append(joiner.rest or b"")
        else:
            given.append(joiner.feed(block))
    before, end = parsed([piece for piece in given if piece])
    whole = parsed(cut(HEAD + body + ending, cuts))
    if "error" not in whole[1]:
        assert (before + taken, end) == whole
    else:  # h11 gives less of a chunk whose end is not one
        assert end == whole[1]
        assert (before + taken).startswith(whole[0])


@settings(deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=8))
def test_garbage_stays_what_it_is(garbage: bytes, cuts: list[int]) -> None:
    blocks = cut(HEAD + garbage, cuts)
    assert parsed(joined(blocks)) == parsed(blocks)


def test_chunks_that_came_together_are_one() -> None:
    body = chunk(b"a") + chunk(b"bc", b";x=1") + chunk(b"d")
    joiner = ChunkJoiner()
    joiner.feed(HEAD)
    assert joiner.feed(body + b"2\r\ne") == b"5\r\nabcde\r\n"
    assert joiner.feed(b"f\r\n0\r\n\r\n") == b"1\r\nf\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1\r\na\r\n2\r\nbb\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n1\r\na\r\n2\r\nbb\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\na\r\n",
        b"HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n1\r\na\r\n2\r\nbb\r\n",
    ],
)
def test_other_bodies_are_left_alone(raw: bytes) -> None:
    assert ChunkJoiner().feed(raw) == raw


def test_the_next_response_on_a_connection() -> None:
    joiner = ChunkJoiner()
    first = HEAD + chunk(b"a") + b"0\r\n\r\n"
    assert joiner.feed(first).endswith(b"0\r\n\r\n")
    joiner.reset()
    assert joiner.feed(HEAD + chunk(b"a") + chunk(b"b")) == HEAD + b"2\r\nab\r\n"
