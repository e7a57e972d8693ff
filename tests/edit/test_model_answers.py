"""What models write around and instead of a file: its own bytes come out, or writing is refused."""

from __future__ import annotations

import json

import pytest

from benchmarks.common import OWN_EDITS, Edit, load_edits
from specclient.edit.checks import check
from specclient.edit.extract import extract
from specclient.edit.restore import restore
from specclient.textfile import FileImage

FILES = {
    "guide.md": "# Guide\n\nRun foo:\n\n```sh\nfoo --all\n```\n\nThen look.\n\n- one\n- two\n\n"
    "```py\nx = foo()\n```\n",
    "short.py": "import os\n\n\ndef foo(a):\n    return a\n\n\ndef main():\n    print(foo(1))\n\n\nmain()\n",
    "long.py": "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(30))
    + "def foo():\n    pass\n",
    "tiny.ini": "[a]\nfoo = 1\nlast = 3\n",
}
FRAMES = [
    (end, mark, codec, final)
    for end in ("\n", "\r\n", "\r")
    for mark, codec in [(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")]
    for final in (0, 1, 3)
]


def outcome(
    raw: bytes, answer: str, name: str, instruction: str = "Rename foo to bar."
) -> tuple[bytes, set[str]]:
    """(the new bytes, the codes of the warnings that block)"""
    image = FileImage.from_bytes(raw, name=name)
    extracted = extract(answer, image.text, name)
    restored = restore(image, extracted.text)
    found = check(image, extracted, restored, instruction)
    return restored.data, {warning.code for warning in found if warning.blocks}


WRAPPED = {
    "bare": "{new}",
    "fence": "````python\n{new}````",
    "fence without an end": "````\n{new}",
    "fence glued to the last line": "````\n{bare}````",
    "fence with a name": "````python:{name}\n{new}````",
    "fence with a title": '````python title="{name}"\n{new}````',
    "fence in a fence": "`````\n````python\n{new}````\n`````",
    "greeting and afterword": "Sure! Here it is:\n\n````\n{new}````\n\nI renamed foo to bar.\n\nLet me know!",
    "explained first": "I need to rename foo to bar. This is how.\n\n````\n{new}````",
    "name above a fence": "**{name}**\n\n````\n{new}````",
    "name above": "{name}\n{new}",
    "label": "Updated file:\n\n{new}",
    "role": "assistant\n{new}",
    "tag": "<file>\n{new}</file>",
    "tag with attributes": '<file path="{name}">\n{new}</file>\nAll done.',
    "tag of its own making": "<updated_file>\n{new}</updated_file>",
    "brackets": "[FILE]\n{new}[/FILE]",
    "words": "=== BEGIN FILE ===\n{new}=== END FILE ===",
    "fence in a tag": "<file>\n````\n{new}````\n</file>",
    "end of text": "{new}<|im_end|>",
    "end of sequence": "{bare}</s>",
    "thoughts": "<think>\n```\nrename\n```\n</think>\n\n{new}",
    "thoughts begun in the prompt": "Rename it.\n</think>\n\n{new}",
    "carriage returns": "{crlf}",
    "byte order mark": "\ufeff{new}",
    "byte order mark in a fence": "````\n\ufeff{new}````",
    "blanks behind every line": "{padded}",
    "no-break spaces": "{hard}",
}


@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("name", FILES)
def test_what_stands_around_the_file_goes(name: str, wrapper: str) -> None:
    new = FILES[name].replace("foo", "bar")
    answer = WRAPPED[wrapper].format(
        new=new,
        name=name,
        bare=new.rstrip("\n"),
        crlf=new.replace("\n", "\r\n"),
        padded=new.replace("\n", "  \n"),
        hard=new.replace(" ", "\u00a0"),
    )
    assert outcome(FILES[name].encode(), answer, name) == (new.encode(), set())


@pytest.mark.parametrize(("end", "mark", "codec", "final"), FRAMES)
@pytest.mark.parametrize("wrapper", ["bare", "greeting and afterword", "tag", "end of text"])
def test_in_every_frame(end: str, mark: bytes, codec: str, final: int, wrapper: str) -> None:
    def framed(text: str) -> bytes:
        return mark + (text.rstrip("\n") + "\n" * final).replace("\n", end).encode(codec)

    old = FILES["short.py"]
    new = old.replace("foo", "bar")
    answer = WRAPPED[wrapper].format(new=new, name="short.py")
    assert outcome(framed(old), answer, "short.py") == (framed(new), set())


def test_tags_around_a_file_go_even_where_most_of_it_was_rewritten() -> None:
    old = "def f(a):\n    return sum(a) / len(a)\n"
    new = "def f(a):\n    if not a:\n        return 0.0\n    return fmean(a)\n"
    assert outcome(old.encode(), f"<file>\n{new}</file>", "a.py") == (new.encode(), set())


@pytest.mark.parametrize("edit", load_edits(OWN_EDITS), ids=lambda edit: edit.name)
def test_real_edits_come_back_whole(edit: Edit) -> None:
    for end, mark, codec, final in FRAMES:
        before, after = (
            mark + (text.rstrip("\n") + "\n" * final).replace("\n", end).encode(codec)
            for text in (edit.before, edit.after)
        )
        for wrapper in ("bare", "greeting and afterword", "tag", "end of text"):
            answer = WRAPPED[wrapper].format(new=edit.after, name=edit.name)
            assert outcome(before, answer, edit.name, edit.instruction) == (after, set())


DOUBTFUL = {
    "nothing": "",
    "an empty fence": "```\n```",
    "one word": "unchanged",
    "done": "Done.",
    "no change": "No changes are needed: the file already does this.",
    "a refusal": "I'm sorry, but I can't help with that.",
    "another refusal": "I cannot edit files directly, but here is how you would do it.",
    "twice": "{new}\n{new}",
    "old and new": "{old}\n{new}",
    "three times": "{new}{new}{new}",
    "a patch": "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-foo\n+bar",
    "a patch in a fence": "```diff\n@@ -1,3 +1,3 @@\n-foo\n+bar\n```",
    "search and replace": "<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE",
    "numbered": "{numbered}",
    "JSON": "{json}",
    "the changed line alone": "{line}",
    "quoted": '"""\n{new}"""',
    "explained": "{new}\n\nThis code renames foo to bar.",
    "changes told": "{new}\n\nKey changes:\n1. renamed foo to bar\n",
    "explained with a heading": "{new}\n\n**Explanation:** renamed.",
    "a kind word": "{new}\n\nI hope this helps!",
    "a question": "{new}\n\nIs there anything else you would like to change?",
    "left out": "{head}\n# ... rest unchanged",
}


@pytest.mark.parametrize("kind", DOUBTFUL)
@pytest.mark.parametrize("name", FILES)
def test_what_is_not_the_file_is_refused(name: str, kind: str) -> None:
    old = FILES[name]
    new = old.replace("foo", "bar")
    answer = DOUBTFUL[kind].format(
        old=old,
        new=new,
        json=json.dumps({"content": new}),
        line=next(line for line in new.split("\n") if "bar" in line),
        head="\n".join(new.split("\n")[: new.count("\n") // 3]),
        numbered="\n".join(f"{number:3}| {line}" for number, line in enumerate(new.split("\n"), start=1)),
    )
    assert outcome(old.encode(), answer, name)[1]


def test_an_answer_that_stops_early_is_refused() -> None:
    old = FILES["long.py"]
    assert outcome(old.encode(), old[: old.index("x + 28") + 2], "long.py")[1] == {"cut"}
    assert outcome(old.encode(), old[: old.index("def f20")], "long.py")[1] == {"lost"}
    assert outcome(old.encode(), old[: old.index("def f20")], "long.py", "Drop f20 to foo.")[1] == set()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param("a.md", "text\n\n```\ncode\n```\n", "text\n\n```\nCODE\n```\n", id="fence at the end"),
        pytest.param("a.md", "```\na\n```\n\nafter\n", "```\nA\n```\n\nafter\n", id="fence at the start"),
        pytest.param(
            "a.md", "# Old\n\n```sh\na\nb\n```\n", "# New\n\n```sh\na\nb\n```\n", id="title above a fence"
        ),
        pytest.param("a.md", "a\n\n```\nb\n```\n\nc\n", "a\n\nb\n\nc\n", id="a fence that goes"),
        pytest.param("a.md", "a\n\nb\n\nc\n", "a\n\n```\nb\n```\n\nc\n", id="a fence that comes"),
        pytest.param("a.md", "one\ntwo\n", "one\ntwo\n\nA whole new sentence.\n", id="a sentence in prose"),
        pytest.param(
            "a.html", "<p>a</p>\n<p>b</p>\n", "<div>\n<p>a</p>\n<p>b</p>\n</div>\n", id="an element around"
        ),
        pytest.param(
            "a.xml", "<a/>\n<b/>\n", "<content>\n<a/>\n<b/>\n</content>\n", id="an element called content"
        ),
        pytest.param("a.py", "a = 1\nb = 2\n", "a = 1\nb = 2\nc = '</think>'\n", id="a line about thoughts"),
        pytest.param("a.py", "a = 1\n", "a = 1\na = 1\n", id="a line doubled"),
        pytest.param("a.py", "x()\ny()\nz()\n", "x()\n", id="lines that go"),
        pytest.param("a.py", "port = 1\n", "port = 2\n", id="the only line"),
        pytest.param("a.py", "import a\n", "# Copyright 2026 Somebody.\n\nimport a\n", id="a comment on top"),
        pytest.param(
            "a.py",
            "def f(a):\n    t = 0\n    for x in a:\n        t += x\n    return t\n",
            "def f(a):\n    return sum(a)\n",
            id="a body made simple",
        ),
        pytest.param("a.txt", "Hello world\n", "Bonjour le monde\n", id="a line in another language"),
        pytest.param("a.py", "a = 1\n", "a = 1\n# Note: this is slow.\n", id="a comment below"),
        pytest.param(
            "a.py", "a = 1\n", "a = 1\n\n# The function will be gone in 2.0.\n", id="another comment"
        ),
        pytest.param("a.md", "One way.\n", "One way.\n\nNote: this is slow.\n", id="a note in prose"),
        pytest.param("a.txt", "Old title\n\nText.\n", "The complete guide\n\nText.\n", id="a title in prose"),
        pytest.param("a.yaml", "a: 1\n", "a: 1\nchanges_made: yes\n", id="a key"),
        pytest.param("a.patch", "@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\n+c\n", id="a patch file"),
        pytest.param(
            "LICENSE", "You may use this as you like.\n", "You may use this as you like it.\n", id="no suffix"
        ),
    ],
)
def test_honest_edits_are_neither_cut_nor_accused(name: str, old: str, new: str) -> None:
    asked = "Improve it; drop what is not needed."
    assert outcome(old.encode(), new, name, asked) == (new.encode(), set())
    assert outcome(old.encode(), f"````\n{new}````", name, asked) == (new.encode(), set())


@pytest.mark.parametrize(
    ("codec", "old"),
    [
        ("latin-1", "# coding: latin-1\nprix = 'é'\nb = 2\n"),
        ("cp1252", "# coding: cp1252\nx = '“é” – €'\nb = 2\n"),
        ("shift_jis", "# coding: shift_jis\n名前 = '~\\\\'\nb = 2\n"),
        ("euc_jp", "# coding: euc_jp\r\n名前 = 1\r\nb = 2\r\n"),
    ],
)
def test_other_encodings_come_back_in_their_own_bytes(codec: str, old: str) -> None:
    answer = old.replace("b = 2", "b = 3").replace("\r\n", "\n").replace("“", '"').replace("”", '"')
    assert outcome(old.encode(codec), answer, "a.py") == (old.replace("b = 2", "b = 3").encode(codec), set())
