"""Answers that are not the whole file are noticed; honest ones are not accused."""

from __future__ import annotations

import pytest

from specclient.edit.checks import EditWarning, check
from specclient.edit.extract import extract
from specclient.edit.restore import restore
from specclient.textfile import FileImage

LINES = [f"value_{number} = compute({number})" for number in range(40)]
FILE = "\n".join(LINES) + "\n"


LESS = "Remove what is not needed."


def warnings(
    answer: str,
    original: str = FILE,
    name: str = "a.py",
    exact: bool = False,
    instruction: str = "Improve this.",
) -> list[EditWarning]:
    image = FileImage.from_bytes(original.encode(), name=name)
    extracted = extract(answer, image.text)
    return list(check(image, extracted, restore(image, extracted.text, exact=exact), instruction))


def blocking(
    answer: str, original: str = FILE, name: str = "a.py", instruction: str = "Improve this."
) -> set[str]:
    found = warnings(answer, original, name, instruction=instruction)
    return {warning.code for warning in found if warning.blocks}


@pytest.mark.parametrize(
    "line",
    [
        "# rest of the file",
        "// ... rest of code remains the same ...",
        "# ... existing code ...",
        "/* existing code here */",
        "<!-- The rest of the document is unchanged -->",
        "# (remaining functions unchanged)",
        "# ... other methods ...",
        "# omitted for brevity",
        "# Same as before",
        "...",
        "# …",
        "// ...",
        "# ... and so on",
        "# [Keep the remaining lines as they are]",
        "# --- truncated ---",
        "[... 12 more lines ...]",
        "<snip>",
        "// etc.",
        "# lines 30-39 unchanged",
        "(content omitted)",
        "<!-- no other changes -->",
        "-- remaining rows",
    ],
)
def test_an_elision_blocks(line: str) -> None:
    assert "elision" in blocking("\n".join([*LINES[:30], line]))


@pytest.mark.parametrize(
    "line",
    ["...", "# rest of the file", "x = [...]  # existing code ..."],
)
def test_a_line_that_the_file_had_is_no_elision(line: str) -> None:
    original = FILE + line + "\n"
    assert blocking(original.replace("value_3 ", "value_three "), original) == set()


@pytest.mark.parametrize(
    "line",
    ["# the remaining time", "the_rest = items[1:]", "def f(): ...", "# existing users keep their plan"],
)
def test_ordinary_new_lines_are_no_elision(line: str) -> None:
    assert blocking(FILE + line) == set()


@pytest.mark.parametrize(
    "line",
    [
        "[section]",
        "(1, 2),",
        "(other, rest),",
        "[same(1)]",
        "# Sum up what is left",
        "<etching/>",
        "same = True",
        "# skip blank lines",
        "rest()",
        "print(...)",
        "- other notes",
    ],
)
def test_ordinary_lines_of_a_shorter_file_are_no_elision(line: str) -> None:
    assert blocking("\n".join([*LINES[:30], line]), name="a.conf", instruction=LESS) == set()


def test_a_heading_is_no_comment() -> None:
    assert blocking("\n".join([*LINES[:30], "# Remaining work"]), name="notes.md", instruction=LESS) == set()
    assert "elision" in blocking("\n".join([*LINES[:30], "# Remaining work"]))


def test_a_strong_shrinking_blocks() -> None:
    assert "shrunk" in blocking("\n".join(LINES[:12]))
    assert blocking("\n".join(LINES[:30]), instruction=LESS) == set()


def test_what_is_told_of_a_shrunk_answer_counts_alike() -> None:
    (warning,) = warnings("\n\n".join(LINES[:1]), "\n\n".join(LINES) + "\n")
    assert str(warning) == "The answer has 1 line, the file 40, blank ones aside."


def test_an_answer_that_is_not_the_file_blocks() -> None:
    essay = "\n".join(f"Step {number}: think about value {number}." for number in range(40))
    assert blocking(essay) == {"unrelated"}


def test_a_name_that_every_line_has_may_change() -> None:
    assert blocking(FILE.replace("value", "amount")) == set()


def test_no_text_blocks() -> None:
    assert blocking("") == {"empty"}
    assert blocking("```\n```") == {"empty"}


def test_prose_that_could_not_be_cut_off_blocks() -> None:
    changed = FILE.replace("value_0 ", "first ")
    assert "preamble" in blocking(f"Here is the file.\n{changed}")
    assert "afterword" in blocking(f"{changed}\nI renamed value_0 to first.")
    assert "afterword" in blocking(f"{changed}\nThis change makes the code now clearer; it should work.")


def test_fences_between_parts_block_in_code_and_not_in_prose() -> None:
    answer = "\n".join([*LINES[:20], "```", "and then", "```python", *LINES[20:]])
    assert "fences" in blocking(answer)
    assert "fences" not in blocking(answer, name="notes.md")


def test_what_was_taken_off_is_told() -> None:
    found = warnings(f"Here is the updated file:\n```python\n{FILE}```\nDone.")
    assert [(warning.code, warning.blocks) for warning in found] == [("prose", False)]
    assert str(found[0]) == "2 lines of prose around the file's text left out."


def test_what_was_kept_is_told_with_the_way_out() -> None:
    original = "a = '\u00a0'  \nb = 1\n"
    found = warnings("a = ' '\nb = 2", original)
    assert [warning.code for warning in found] == ["kept"]
    assert "exact=True" in found[0].text
    assert "whole difference" in warnings("a = ' '\nb = 1", original)[0].text
    assert warnings("a = ' '\nb = 1", original, exact=True) == []


def test_a_faithful_edit_has_no_warnings() -> None:
    assert warnings(FILE.replace("value_7", "seven")) == []
