"""What can be read as a text file, and what is refused with which words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specclient.errors import FileError
from specclient.textfile import MAX_BYTES, FileImage


@pytest.mark.parametrize(
    ("raw", "text", "encoding", "ending"),
    [
        (b"a\nb\n", "a\nb\n", "utf-8", "\n"),
        (b"a\r\nb", "a\nb", "utf-8", "\r\n"),
        (b"a\rb\r", "a\nb\n", "utf-8", "\r"),
        (b"\xef\xbb\xbfa\r\n", "a\n", "utf-8", "\r\n"),
        ("\ufeffaé\r\n".encode("utf-16-le"), "aé\n", "utf-16-le", "\r\n"),
        ("\ufeffaé\n".encode("utf-16-be"), "aé\n", "utf-16-be", "\n"),
        ("\ufeffa\n".encode("utf-32-le"), "a\n", "utf-32-le", "\n"),
        (
            b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
            "# -*- coding: latin-1 -*-\nx = 'é'\n",
            "iso8859-1",
            "\n",
        ),
        (b'<?xml version="1.0" encoding="cp1252"?><a>\x80</a>', None, "cp1252", "\n"),
        ("a\u2028b\x0cc\n".encode(), "a\u2028b\x0cc\n", "utf-8", "\n"),
    ],
)
def test_what_a_file_says_of_itself_is_read(raw: bytes, text: str | None, encoding: str, ending: str) -> None:
    image = FileImage.from_bytes(raw)
    assert (image.encoding, image.line_ending) == (encoding, ending)
    assert text is None or image.text == text
    restored = "".join(line + end for line, end in zip(image.lines, image.endings, strict=True))
    assert image.encode(restored) == raw


def test_mixed_endings_are_noticed() -> None:
    image = FileImage.from_bytes(b"a\r\nb\nc\r\n")
    assert image.mixed_endings
    assert image.line_ending == "\r\n"


@pytest.mark.parametrize(
    ("raw", "encoding", "words"),
    [
        (b"", None, "is empty"),
        (b"\xef\xbb\xbf", None, "nothing else"),
        (b"ab\0cd", None, "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0", None, "binary"),
        (b"caf\xe9\n", None, "byte 0xe9 at offset 3); name its encoding"),
        (b"caf\xe9\n", "utf-8", "is not utf-8 text"),
        (b"\xff\xfea", None, "is not utf-16-le text"),
        (b"a\n", "klingon", "'klingon' is not an encoding"),
        (b"a\n", "rot13", "not for text files"),
        (b"+AGEAYg-", "utf-7", "round trip"),
    ],
)
def test_what_cannot_be_edited_is_refused_in_one_sentence(
    raw: bytes, encoding: str | None, words: str
) -> None:
    with pytest.raises(FileError) as caught:
        FileImage.from_bytes(raw, encoding=encoding, name="f.txt")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_declared_encoding_is_used_for_reading_and_writing() -> None:
    image = FileImage.from_bytes(b"caf\xe9\n", encoding="latin-1")
    assert image.text == "café\n"
    assert image.encode("thé\n") == b"th\xe9\n"
    with pytest.raises(FileError, match=r"cannot hold U\+20AC in line 2"):
        image.encode("a\n€\n")


def test_missing_directory_and_odd_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        FileImage.load(tmp_path / "no.txt")
    with pytest.raises(FileError, match="is a directory"):
        FileImage.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="not a regular file"):
        FileImage.load(tmp_path / "pipe")
    with open(tmp_path / "big", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(FileError, match="no model takes more"):
        FileImage.load(tmp_path / "big")


def test_the_repr_holds_no_content() -> None:
    assert "secret" not in repr(FileImage.from_bytes(b"secret = 1\n"))


def test_utf_16_without_a_mark_is_refused_with_the_way_out() -> None:
    raw = "name = 1\n".encode("utf-16-le")
    with pytest.raises(FileError, match=r"NUL characters\); if it is UTF-16 without a mark, name its"):
        FileImage.from_bytes(raw)
    assert FileImage.from_bytes(raw, encoding="utf-16-le").text == "name = 1\n"
    with pytest.raises(FileError, match=r"NUL characters\)\.$"):
        FileImage.from_bytes(b"abc\0def, and so on\n")
