"""Text that may be shown: whole characters, in order, all of them."""

from __future__ import annotations

import pytest
from engine_kit import ByteTokenizer
from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.text import TextStream

SAMPLE = "a é 中 🎉👩‍👩‍👧 \r\n\tü"


def pieces_of(raw: bytes, prompt: bytes = b"p", stop: tuple[str, ...] = ()) -> list[str]:
    stream = TextStream(ByteTokenizer(), list(prompt), stop)
    pieces = []
    for byte in raw:
        if not stream.stopped:
            stream.push(byte)
            pieces.append(stream.take())
    return [*pieces, stream.finish()]


def test_characters_are_shown_when_they_are_whole() -> None:
    assert pieces_of("é🎉x".encode()) == ["", "é", "", "", "", "🎉", "x", ""]


@given(st.text(), st.lists(st.integers(0, 40)))
def test_pieces_join_to_the_text_wherever_it_is_taken(text: str, taken_at: list[int]) -> None:
    raw = text.encode()
    stream = TextStream(ByteTokenizer(), [1], ())
    shown = ""
    for at, byte in enumerate(raw):
        stream.push(byte)
        if at in taken_at:
            shown += stream.take()
            assert "�" not in shown or "�" in text
    assert shown + stream.finish() == text


def test_an_unfinished_character_is_flushed_at_the_end() -> None:
    assert pieces_of("x🎉".encode()[:3])[-1] == "�"
    assert "".join(pieces_of(b"a\xffb")) == "a�b"


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_character_that_the_prompt_began_comes_whole(cut: int) -> None:
    raw = "🎉".encode()
    assert "".join(pieces_of(raw[cut:] + b"!", prompt=b"ok" + raw[:cut])) == "🎉!"


def test_a_prompt_that_ends_in_a_whole_character_adds_nothing() -> None:
    for prompt in ("ok", "é", "中", "🎉", ""):
        assert "".join(pieces_of(b"!", prompt=prompt.encode())) == "!"


@given(st.text("abAB", max_size=30), st.lists(st.text("ab", min_size=1, max_size=5), max_size=3))
def test_stop_strings_end_the_text_before_themselves(text: str, stops: list[str]) -> None:
    pieces = pieces_of(text.encode(), stop=tuple(stops))
    # The text as soon as any stop string is complete, without it.
    ends = [end for end in range(1, len(text) + 1) if any(text[:end].endswith(stop) for stop in stops)]
    if ends:
        head = text[: ends[0]]
        expected = head[: min(at for at in (head.find(stop) for stop in stops) if at >= 0)]
    else:
        expected = text
    assert "".join(pieces) == expected


def test_every_boundary_of_a_sample() -> None:
    raw = SAMPLE.encode()
    for boundary in range(len(raw)):
        stream = TextStream(ByteTokenizer(), [1], ())
        for byte in raw[:boundary]:
            stream.push(byte)
        head = stream.take()
        for byte in raw[boundary:]:
            stream.push(byte)
        assert head + stream.finish() == SAMPLE
        assert "�" not in head
