"""The bytes are the product: a regenerated file is the old file but for the edit."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from specclient.edit.extract import extract
from specclient.edit.restore import restore, simplified
from specclient.textfile import FileImage

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
ODD = "\u00a0\u2014\u201c\u201d\u2019\u2026\t \u200b"
LINE = st.text(st.sampled_from("abcxyz(){}=.,#" + ODD), max_size=20).map(lambda line: line + "|")
# "|" closes each line, so that trailing blanks are made on purpose and only there.
BLANKS = st.sampled_from(["", "", " ", "  ", "\t", "\u00a0"])


@st.composite
def files(draw: st.DrawFn) -> tuple[list[str], list[str], bytes, str]:
    lines = draw(st.lists(st.builds(str.__add__, LINE, BLANKS), min_size=1, max_size=25))
    one = draw(ENDS)
    ends = [one] * len(lines) if draw(st.booleans()) else [draw(ENDS) for _ in lines]
    if draw(st.booleans()):
        ends[-1] = ""
    mark, codec = draw(
        st.sampled_from(
            [
                (b"", "utf-8"),
                (b"\xef\xbb\xbf", "utf-8"),
                (b"\xff\xfe", "utf-16-le"),
                (b"\xfe\xff", "utf-16-be"),
            ]
        )
    )
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    return lines, ends, mark + text.encode(codec), codec


def as_models_write(text: str) -> str:
    """A copy in the simpler form that models give back, trailing blanks gone."""
    return "\n".join(simplified(line) for line in text.split("\n"))


@given(files(), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_an_unchanged_answer_gives_the_same_bytes(
    file: tuple[list[str], list[str], bytes, str], simpler: bool, fence: bool, crlf: bool
) -> None:
    raw = file[2]
    image = FileImage.from_bytes(raw)
    answer = as_models_write(image.text) if simpler else image.text
    answer = answer.rstrip("\n")
    if fence:
        answer = f"```python\n{answer}\n```"
    if crlf:
        answer = answer.replace("\n", "\r\n")
    assert restore(image, extract(answer, image.text).text).data == raw


@given(files(), st.data())
@settings(max_examples=300, deadline=None)
def test_only_the_changed_line_differs(
    file: tuple[list[str], list[str], bytes, str], data: st.DataObject
) -> None:
    lines, ends, raw, codec = file
    image = FileImage.from_bytes(raw)
    at = data.draw(st.integers(0, len(lines) - 1))
    simpler = data.draw(st.booleans())
    wanted = [*lines]
    wanted[at] = f"CHANGED_{at}_LINE"
    answer = [simplified(line) if simpler and line != wanted[at] else line for line in wanted]
    expected = "".join(line + end for line, end in zip(wanted, ends, strict=True))
    result = restore(image, "\n".join(answer))
    assert result.data == image.bom + expected.encode(codec)


@given(files(), st.data())
@settings(max_examples=200, deadline=None)
def test_an_inserted_line_leaves_all_others(
    file: tuple[list[str], list[str], bytes, str], data: st.DataObject
) -> None:
    lines, _, raw, codec = file
    image = FileImage.from_bytes(raw)
    at = data.draw(st.integers(0, len(lines)))
    answer = [*map(simplified, lines[:at]), "INSERTED", *map(simplified, lines[at:])]
    result = restore(image, "\n".join(answer)).data[len(image.bom) :].decode(codec)
    kept = re.split(r"INSERTED(?:\r\n|\n|\r)?", result)
    assert len(kept) == 2
    original = raw[len(image.bom) :].decode(codec)
    if at < len(lines):
        assert "".join(kept) == original
    else:  # the line that did not end has an end now, and the new one mirrors the file's
        assert "".join(kept).rstrip("\r\n") == original.rstrip("\r\n")
        assert result.endswith(("\n", "\r")) == original.endswith(("\n", "\r"))


@given(files(), st.data())
@settings(max_examples=200, deadline=None)
def test_a_removed_line_leaves_all_others(
    file: tuple[list[str], list[str], bytes, str], data: st.DataObject
) -> None:
    lines, ends, raw, codec = file
    image = FileImage.from_bytes(raw)
    if len(lines) < 2:
        return
    at = data.draw(st.integers(0, len(lines) - 2))
    if lines.count(lines[at]) > 1 or len({simplified(line) for line in lines}) < len(lines):
        return  # which of two equal lines was meant cannot be seen
    left = [*zip(lines, ends, strict=True)]
    del left[at]
    expected = "".join(line + end for line, end in left)
    answer = "\n".join(simplified(line) for line, _ in left)
    assert restore(image, answer).data == image.bom + expected.encode(codec)


MARKDOWN = st.lists(
    st.sampled_from(
        ["```", "```py", "~~~", "text", "more text", "# Title", "", "Sure, here it is:", "<file>"]
    ),
    min_size=1,
    max_size=14,
).map("\n".join)


@given(MARKDOWN)
@settings(max_examples=500, deadline=None)
def test_a_files_own_fences_and_words_are_never_taken_for_a_wrapper(text: str) -> None:
    if text.strip():
        assert extract(text, text).text == text.strip("\n")


@given(
    MARKDOWN,
    st.sampled_from(["", "Here is the updated file:\n\n"]),
    st.sampled_from(["", "\n\nAll done now."]),
)
@settings(max_examples=500, deadline=None)
def test_a_wrapper_comes_off_whatever_fences_the_file_has(text: str, before: str, after: str) -> None:
    if not text.strip():
        return
    found = extract(f"{before}````markdown\n{text}\n````{after}", text)
    assert found.fence
    assert found.text.strip("\n") == text.strip("\n")
