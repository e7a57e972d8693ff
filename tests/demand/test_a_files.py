"""A28 to A38: a file comes back byte for byte but for the edit, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specclient
from tests.doors import SyncDoor
from tests.server import DONE, Close, chunk, data, finish, sse, stream

LINES = [f"value_{number} = {number}" for number in range(200)]
FILE = "\n".join(LINES) + "\n"
CHANGED = FILE.replace("value_100 = 100", "value_100 = -1")
FANCY = "titel = “Müller–Söhne”\u00a0— 5\u202f€  \n\nx\t=\t1   \nname = 'foo'\n"

Play = Any


@pytest.fixture
def edit(door: SyncDoor, tmp_path: Path) -> Any:
    """`edit(file, answer, name=…, finish=…)` -> (the file's bytes afterwards, the edit or the error)."""

    def run(before: bytes, answer: Any, *, name: str = "f.py", reason: str = "stop", **options: Any) -> Any:
        path = tmp_path / name
        path.write_bytes(before)
        if isinstance(answer, str):
            pieces = [answer[at : at + 50] for at in range(0, len(answer), 50)]
            answer = sse(*[chunk(piece) for piece in pieces], finish(reason))
        door.server.play(answer)
        options = {"write": True, **options}
        try:
            done = door.run(door.client.edit(path, "change it", **options))
        except specclient.SpecclientError as error:
            done = error
        return path.read_bytes(), done

    return run


def crlf(text: str, encoding: str = "utf-8", bom: bytes = b"") -> bytes:
    return bom + text.replace("\n", "\r\n").encode(encoding)


ROUND_TRIPS: dict[str, tuple[bytes, str, bytes]] = {
    "A28": (crlf(FILE), CHANGED, crlf(CHANGED)),
    "A28-answered-in-crlf": (crlf(FILE), CHANGED.replace("\n", "\r\n"), crlf(CHANGED)),
    "A28-lf-answered-in-crlf": (FILE.encode(), CHANGED.replace("\n", "\r\n"), CHANGED.encode()),
    "A28-bom": (crlf(FILE, bom=b"\xef\xbb\xbf"), CHANGED, crlf(CHANGED, bom=b"\xef\xbb\xbf")),
    "A28-utf16": (
        crlf(FILE, "utf-16-le", b"\xff\xfe"),
        CHANGED,
        crlf(CHANGED, "utf-16-le", b"\xff\xfe"),
    ),
    "A28-cr": (FILE.replace("\n", "\r").encode(), CHANGED, CHANGED.replace("\n", "\r").encode()),
    "A28-mixed": (
        b"a = 1\r\nb = 2\nc = 3\r\nd = 4\n",
        "a = 1\nb = 5\nc = 3\nd = 4\n",
        b"a = 1\r\nb = 5\nc = 3\r\nd = 4\n",
    ),
    "A28-line-added": (b"a\r\nb\r\n", "a\nx\nb\n", b"a\r\nx\r\nb\r\n"),
    "A31": (
        FANCY.encode(),
        "titel = \"Müller-Söhne\" - 5 €\n\nx = 1\nname = 'bar'\n".replace("x = 1", "x\t=\t1"),
        FANCY.replace("foo", "bar").encode(),
    ),
    "A31-markdown": (
        b"# Title\n\nfirst line  \nsecond \xe2\x80\x94 line\n\nlast foo\n",
        "# Title\n\nfirst line\nsecond - line\n\nlast bar\n",
        b"# Title\n\nfirst line  \nsecond \xe2\x80\x94 line\n\nlast bar\n",
    ),
    "A32": (b"a\nfoo\n", "a\nbar", b"a\nbar\n"),
    "A32-without": (b"a\nfoo", "a\nbar\n", b"a\nbar"),
    "A32-crlf-without": (b"a\r\nfoo", "a\nbar\n", b"a\r\nbar"),
    "A32-two": (b"a\nfoo\n\n", "a\nbar", b"a\nbar\n\n"),
    "A32-one-line": (b"foo", "bar\n", b"bar"),
    "A33-fence": (b"a\nfoo\n", "```python\na\nbar\n```", b"a\nbar\n"),
    "A33-own-fence": (b"```\nfoo\n```\n", "```\nbar\n```\n", b"```\nbar\n```\n"),
    "A38-tags": (b"a\nfoo\n", "<think>Rename foo to bar.\nOK.</think>\n\na\nbar\n", b"a\nbar\n"),
}


@pytest.mark.parametrize(("before", "answer", "after"), ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_only_the_edit_changes(edit: Any, before: bytes, answer: str, after: bytes) -> None:
    got, done = edit(before, answer, name="f.md" if b"Title" in before or b"```" in before else "f.py")
    assert got == after, done
    assert done.written


def test_a28_exactly_one_line_differs(edit: Any) -> None:
    got, _ = edit(crlf(FILE), CHANGED)
    old, new = crlf(FILE).split(b"\r\n"), got.split(b"\r\n")
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [
        (b"value_100 = 100", b"value_100 = -1")
    ]


@pytest.mark.parametrize("reason", ["stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence"])
def test_a34_a_whole_answer_is_one_however_its_end_is_called(edit: Any, reason: str) -> None:
    got, done = edit(FILE.encode(), CHANGED, reason=reason)
    assert got == CHANGED.encode(), done


CUT = [
    "length",
    "max_tokens",
    "MAX_TOKENS",
    "model_length",
    "content_filter",
    "SAFETY",
    "tool_calls",
    "error",
]


@pytest.mark.parametrize("reason", CUT)
def test_a34_a_cut_off_answer_never_reaches_the_file(edit: Any, reason: str) -> None:
    got, error = edit(FILE.encode(), CHANGED[:2000], reason=reason, force=True)
    assert got == FILE.encode()
    assert isinstance(error, specclient.IncompleteOutput)
    assert error.partial == CHANGED[:2000]


BROKEN = {
    "A34-no-end": lambda: sse(chunk(CHANGED[:1000]), done=False),
    "A34-reset": lambda: stream(data(chunk(CHANGED[:1000])), Close(reset=True)),
    "A34-cut-in-a-frame": lambda: stream(data(chunk(CHANGED[:1000])), data(finish())[:20], terminate=False),
    "A34-error-inside": lambda: sse(chunk(CHANGED[:1000]), {"error": {"message": "overloaded", "code": 503}}),
    "A34-done-without-reason": lambda: stream(data(chunk(CHANGED[:1000])), DONE),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_stream_never_reaches_the_file(edit: Any, broken: Play) -> None:
    got, error = edit(FILE.encode(), broken(), force=True)
    assert got == FILE.encode()
    assert isinstance(error, specclient.SpecclientError)
    assert error.partial == CHANGED[:1000]


ELISIONS = {
    "A36": "# ... rest of file here ...",
    "A36-here": "# rest of file here",
    "A36-slashes": "// ... existing code ...",
    "A36-unchanged": "# (rest of the code remains unchanged)",
    "A36-html": "<!-- the rest of the file stays the same -->",
    "A36-brevity": "# remaining assignments omitted for brevity",
    "A36-dots": "...",
    "A36-etc": "# ... and so on",
    "A36-keep": "# [Keep the remaining lines as they are]",
    "A36-same": "/* same as before */",
    "A36-truncated": "# --- truncated ---",
}


@pytest.mark.parametrize("line", ELISIONS.values(), ids=ELISIONS)
def test_an_elision_asks_for_force(edit: Any, line: str) -> None:
    short = "\n".join([*LINES[:11], line]) + "\n"
    got, error = edit(FILE.encode(), short)
    assert got == FILE.encode()
    assert isinstance(error, specclient.EditRefused)
    assert any(warning.blocks for warning in error.edit.warnings)
    got, done = edit(FILE.encode(), short, force=True)
    assert got == short.encode()
    assert done.warnings


@pytest.mark.parametrize("line", ELISIONS.values(), ids=ELISIONS)
def test_an_elision_in_the_middle_is_seen_too(edit: Any, line: str) -> None:
    """Half of the file is left out: not few enough lines to look shrunk."""
    _, error = edit(FILE.encode(), "\n".join([*LINES[:80], line, *LINES[150:]]) + "\n")
    assert isinstance(error, specclient.EditRefused)


def test_a36_an_honest_small_answer_is_written(edit: Any) -> None:
    for text in (CHANGED, FILE + "extra = 1\n", "\n".join(LINES[:150]) + "\n"):
        got, done = edit(FILE.encode(), text)
        assert got == text.encode(), done


REASONING = {
    "A38": [chunk(reasoning_content="First I rename"), chunk(CHANGED)],
    "A38-reasoning": [chunk(reasoning="First"), chunk(CHANGED, reasoning="more")],
    "A38-details": [chunk("", reasoning_details=[{"text": "First"}]), chunk(CHANGED)],
    "A38-parts": [
        chunk([{"type": "thinking", "thinking": [{"type": "text", "text": "First"}]}]),  # type: ignore[arg-type]
        chunk([{"type": "text", "text": CHANGED}]),  # type: ignore[arg-type]
    ],
    "A38-tags": [chunk("<think>\nFirst I"), chunk(" rename</think>\n\n"), chunk(CHANGED)],
}


@pytest.mark.parametrize("chunks", REASONING.values(), ids=REASONING)
def test_reasoning_is_another_channel(edit: Any, chunks: list[Any]) -> None:
    got, done = edit(FILE.encode(), sse(*chunks, finish()))
    assert got == CHANGED.encode(), done
