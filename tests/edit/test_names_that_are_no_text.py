"""Files whose names are not UTF-8: they are edited like others, and what is told of them is text."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from specclient.edit.naming import labels
from specclient.errors import ConfigError, EditRefused, FileError, IncompleteOutput
from specclient.textfile import FileImage, name_in_text

LATIN = os.fsdecode(b"caf\xe9.py")
"""What Python makes of the bytes where names are UTF-8."""
ASCII = b"caf\xc3\xa9.py".decode("ascii", "surrogateescape")
"""What it makes of a UTF-8 name where names are ASCII."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / LATIN
    try:
        path.write_text("x = 1\n")
    except OSError:
        pytest.skip("this file system takes no such name")
    return path


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("caf\u00e9.py", "caf\u00e9.py"),
        ("caf\udce9.py", "caf\ufffd.py"),
        (ASCII, "caf\u00e9.py"),
        ("caf\ud800.py", "caf\ufffd\ufffd\ufffd.py"),
    ],
)
def test_a_name_becomes_text(name: str, shown: str) -> None:
    assert name_in_text(Path(name)) == shown


def test_such_a_file_is_edited(run_edit: Any, path: Path) -> None:
    edit, client = run_edit("The file caf\u00e9.py:\n```\ny = 2\n```", path, "Change it all.", write=True)
    assert path.read_text() == "y = 2\n"
    question = client.request["messages"][1]["content"]
    assert "The file caf\ufffd.py:" in question
    question.encode()
    told = edit.as_dict()
    assert told["path"].endswith("caf\ufffd.py")
    json.dumps(told["diff"] + told["path"], ensure_ascii=False).encode()
    assert LATIN in edit.diff()


def test_messages_about_it_are_text(run_edit: Any, path: Path) -> None:
    with pytest.raises(EditRefused, match="caf\ufffd") as refused:
        run_edit("I cannot do that.", path, "x", write=True)
    with pytest.raises(IncompleteOutput, match="caf\ufffd") as cut:
        run_edit("y", path, "x", finish="length")
    path.chmod(0o400)
    os.link(path, path.with_name("other"))
    with pytest.raises(FileError, match="caf\ufffd") as linked:
        run_edit("y = 1", path, "x", write=True)
    with pytest.raises(FileError, match="caf\ufffd") as missing:
        FileImage.load(path.with_name(f"no-{LATIN}"))
    for caught in (refused, cut, linked, missing):
        str(caught.value).encode()


@pytest.mark.parametrize(
    ("line", "is_label"),
    [
        ("The file caf\ufffd.py:", True),
        ("**caf\u00e9.py**", True),
        ("caf.py", True),
        ("caf\\xe9.py", False),
        ("The file cafeteria.txt:", False),
        ("tea.py", False),
    ],
)
def test_a_model_may_spell_it_as_it_likes(line: str, is_label: bool) -> None:
    assert labels(line, "caf\ufffd.py") is is_label


def test_an_instruction_in_bytes_of_another_encoding_is_read_as_utf_8(run_edit: Any, path: Path) -> None:
    _, client = run_edit(
        "x = 'caf\u00e9'", path, "Say " + "caf\u00e9".encode().decode("ascii", "surrogateescape")
    )
    assert "Instruction: Say caf\u00e9\n" in client.request["messages"][1]["content"]
    with pytest.raises(ConfigError, match="no UTF-8"):
        run_edit("x", path, "Say caf\udce9")
