"""Cases of restoring that deserve a name; the properties are in test_edit_roundtrip."""

from __future__ import annotations

import pytest

from specclient.edit.restore import restore
from specclient.errors import FileError
from specclient.textfile import FileImage


def restored(raw: bytes, answer: str, *, exact: bool = False) -> bytes:
    return restore(FileImage.from_bytes(raw), answer, exact=exact).data


@pytest.mark.parametrize(
    ("raw", "answer", "expected"),
    [
        pytest.param(b"a\r\nb\r\nc\r\n", "a\nB\nc", b"a\r\nB\r\nc\r\n", id="crlf, one line"),
        pytest.param(b"a\r\nb\nc\r\n", "a\nb\nC\nd", b"a\r\nb\nC\r\nd\r\n", id="mixed, one changed, one new"),
        pytest.param(b"a\nb", "a\nB\n", b"a\nB", id="no final newline"),
        pytest.param(b"a\nb\n", "a\nB", b"a\nB\n", id="final newline"),
        pytest.param(b"a\nb\n\n\n", "a\nB\n", b"a\nB\n\n\n", id="blank lines at the end"),
        pytest.param(b"\n\na\nb\n", "a\nB", b"\n\na\nB\n", id="blank lines at the start"),
        pytest.param(b"a\nb\n  \n\t\n", "a\nB", b"a\nB\n  \n\t\n", id="lines of blanks at the end"),
        pytest.param(b" \na\nb\n ", "a\nB", b" \na\nB\n ", id="lines of blanks at both ends"),
        pytest.param(b"\n\n", "a", b"a\n", id="nothing but blank lines"),
        pytest.param(b"a\n\x0c\nb\n", "a\n\nB", b"a\n\x0c\nB\n", id="form feed left out"),
        pytest.param(b"a\r\r\nb\r\r\n", "a\n\nB", b"a\r\r\nB\r\r\n", id="cr cr lf"),
        pytest.param(
            b"if a:\n    b = 1\n", "if a:\n\u00a0   b = 2", b"if a:\n    b = 2\n", id="a blank too many"
        ),
        pytest.param(b"a\nb\nc\n", "a  \nB  \nc  ", b"a\nB\nc\n", id="blanks behind every line"),
        pytest.param(
            "one two\u00a0\nx\n".encode(),
            "one two three\nx",
            "one two three\u00a0\nx\n".encode(),
            id="longer line",
        ),
        pytest.param(b"a\r\nb", "a\nb\nc", b"a\r\nb\r\nc", id="line after an unended one"),
        pytest.param(
            "x\u00a0y — “z”  \nk\n".encode(), 'x y - "z"\nK', "x\u00a0y — “z”  \nK\n".encode(), id="A31"
        ),
        pytest.param(
            "foo\u00a0is — it  \n".encode(), "bar is - it", "bar\u00a0is — it  \n".encode(), id="within"
        ),
        pytest.param(
            b"if x:\n\tfoo()\n\tb()\n", "if x:\n    foo()\n    c()", b"if x:\n\tfoo()\n\tc()\n", id="tab"
        ),
        pytest.param(b"a = 1  \nb = 2\t\n", "a = 1\nb = 3", b"a = 1  \nb = 3\t\n", id="trailing blanks"),
        pytest.param(
            "cafe\u0301\nx\n".encode(), "café\ny", "cafe\u0301\ny\n".encode(), id="decomposed accents"
        ),
        pytest.param("a\u200bb\nx\n".encode(), "ab\ny", "a\u200bb\ny\n".encode(), id="zero-width space"),
        pytest.param("wait…\nx\n".encode(), "wait...\ny", "wait…\ny\n".encode(), id="ellipsis"),
        pytest.param(
            "a\x0cb\u2028c\nx\n".encode(), "a\x0cb\u2028c\ny", "a\x0cb\u2028c\ny\n".encode(), id="U+2028"
        ),
        pytest.param(b"x\n", "", b"", id="nothing left"),
    ],
)
def test_restore(raw: bytes, answer: str, expected: bytes) -> None:
    assert restored(raw, answer) == expected


def test_exact_takes_the_characters_and_keeps_the_frame() -> None:
    raw = "\ufeffa — b  \r\nx\r\n".encode()
    assert restored(raw, "a - b\nx", exact=True) == "\ufeffa - b\r\nx\r\n".encode()


def test_re_indentation_is_an_edit_and_not_a_simplification() -> None:
    assert restored(b"a\nb\n", "a\n    b") == b"a\n    b\n"
    assert restored(b"    b\n", "        b") == b"        b\n"
    assert restored(b"\tb\n", "        b") == b"\t\tb\n"


def test_new_lines_of_a_file_indented_by_tabs_have_tabs() -> None:
    make = b"all:\n\tgcc a.c\n"
    assert restored(make, "all:\n    gcc a.c\n    strip a.out") == b"all:\n\tgcc a.c\n\tstrip a.out\n"
    assert restored(make, "all:\n    gcc a.c\n    x", exact=True) == b"all:\n    gcc a.c\n    x\n"
    mixed = b"\ta\n  b\n"
    assert restored(mixed, "    a\n  b\n    c") == b"\ta\n  b\n    c\n"


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    image = FileImage.from_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    with pytest.raises(FileError, match=r"U\+2713 in line 2"):
        restore(image, "# coding: latin-1\nx = '✓'")


def test_ten_thousand_lines_with_few_distinct_ones_are_quick() -> None:
    lines = ["}", "", "x += 1  ", "return"] * 2500
    raw = "\r\n".join(["first", *lines, "last"]).encode()
    answer = "\n".join(["FIRST", *(line.rstrip() for line in lines), "LAST"])
    assert restored(raw, answer) == "\r\n".join(["FIRST", *lines, "LAST"]).encode()


def test_minified_lines_are_not_compared_character_by_character() -> None:
    line = "a\u00a0b;" * 20_000
    assert (
        restored(f"{line}\n".encode(), line.replace("a", "c", 1))
        == (line.replace("a", "c", 1) + "\n").encode()
    )
