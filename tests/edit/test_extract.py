"""The file's text out of a model's answer: wrappers go, what is the file's own stays."""

from __future__ import annotations

import pytest

from specclient.edit.extract import Extracted, extract

CODE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
NEW = "def f():\n    return 1\n\n\ndef h():\n    return 2"
GUIDE = "# Title\n\nRun:\n\n```sh\nmake\n```\n"
NEW_GUIDE = "# Title\n\nRun:\n\n```sh\nmake all\n```"
SNIPPET = "```python\nx = 1\n```\n"


@pytest.mark.parametrize(
    ("original", "answer", "expected"),
    [
        pytest.param(CODE, NEW, Extracted(NEW), id="bare"),
        pytest.param(CODE, f"\n\n{NEW}\n\n", Extracted(NEW), id="blank lines around"),
        pytest.param(CODE, f"```python\n{NEW}\n```", Extracted(NEW, fence=True), id="fence"),
        pytest.param(
            CODE, f"```\r\n{NEW}\r\n```\r\n".replace("\n", "\n"), Extracted(NEW, fence=True), id="crlf"
        ),
        pytest.param(CODE, f"~~~~py\n{NEW}\n~~~~", Extracted(NEW, fence=True), id="tildes"),
        pytest.param(CODE, f"```python\n{NEW}", Extracted(NEW, fence=True), id="fence left open"),
        pytest.param(
            CODE,
            f"Here is the updated file:\n\n```python\n{NEW}\n```\n\nI renamed g to h.",
            Extracted(NEW, fence=True, before=1, after=1),
            id="greeting, fence, afterword",
        ),
        pytest.param(
            CODE, f"Sure! Here you go:\n\n{NEW}", Extracted(NEW, before=1), id="greeting without fence"
        ),
        pytest.param(CODE, f"<think>\nrename g…\n</think>\n\n{NEW}", Extracted(NEW), id="thinking aloud"),
        pytest.param(GUIDE, NEW_GUIDE, Extracted(NEW_GUIDE), id="markdown with its own fence at the end"),
        pytest.param(
            GUIDE, f"```markdown\n{NEW_GUIDE}\n```", Extracted(NEW_GUIDE, fence=True), id="markdown, wrapped"
        ),
        pytest.param(
            GUIDE,
            f"```markdown\n{NEW_GUIDE}",
            Extracted(NEW_GUIDE, fence=True),
            id="markdown, wrapper left open",
        ),
        pytest.param(
            SNIPPET, "```python\nx = 2\n```", Extracted("```python\nx = 2\n```"), id="file is a fence"
        ),
        pytest.param(
            SNIPPET,
            "```markdown\n```python\nx = 2\n```\n```",
            Extracted("```python\nx = 2\n```", fence=True),
            id="file is a fence, wrapped",
        ),
        pytest.param(
            SNIPPET + "\ntext\n",
            "```python\nx = 2\n```\n\ntext",
            Extracted("```python\nx = 2\n```\n\ntext"),
            id="file begins with a fence",
        ),
        pytest.param(
            "run make\nthen run it\nand look\n",
            "Build:\n```sh\nmake\n```\nthen run it\nand look",
            Extracted("Build:\n```sh\nmake\n```\nthen run it\nand look"),
            id="an edit that adds a fence near the top",
        ),
        pytest.param(
            "Sure thing\nsecond line\n",
            "Sure thing\n2nd line",
            Extracted("Sure thing\n2nd line"),
            id="a file that greets",
        ),
        pytest.param(
            "    indented\n", "    indentation", Extracted("    indentation"), id="leading blanks stay"
        ),
        pytest.param(CODE, "", Extracted(""), id="nothing"),
    ],
)
def test_extract(original: str, answer: str, expected: Extracted) -> None:
    assert extract(answer, original) == expected


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        ("# a.py", True),
        ("// src/a.py", True),
        ("<!-- a.py -->", True),
        ("# File: a.py", True),
        ("# b.py", False),
        ("# a.py does this", False),
        ("a.py", True),
        ("b.py", False),
    ],
)
def test_a_comment_with_the_files_name_that_the_model_put_on_top_goes(line: str, removed: bool) -> None:
    for answer in (f"{line}\n{NEW}", f"```python\n{line}\n{NEW}\n```"):
        found = extract(answer, CODE, "folder/a.py")
        assert found.text == (NEW if removed else f"{line}\n{NEW}")
        assert found.before == int(removed)
    assert extract(f"{line}\n{NEW}", f"{line}\n{CODE}", "a.py").text == f"{line}\n{NEW}"
