"""One edit from end to end, with a client that answers from a script; sync and async alike."""

from __future__ import annotations

import inspect
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specclient.client import AsyncClient, Client
from specclient.client.calls import EXTRAS
from specclient.client.params import BODIES, EditParams
from specclient.edit import edit_file, edit_file_async
from specclient.errors import ConfigError, EditRefused, FileError, IncompleteOutput
from specclient.prediction import Prediction
from specclient.report import Report
from tests.edit.fakes import FakeClient, chunk

OLD = b"\xef\xbb\xbfdef foo():\r\n    return 1  \r\n\r\nfoo()\r\n"
ANSWER = "```python\ndef bar():\n    return 1\n\nbar()\n```"
NEW = OLD.replace(b"foo", b"bar")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mod.py"
    path.write_bytes(OLD)
    return path


def test_the_request_holds_the_file_once_and_as_the_prediction(run_edit: Any, path: Path) -> None:
    _, client = run_edit(ANSWER, path, "rename foo to bar", model="m")
    request = client.request
    text = "def foo():\n    return 1  \n\nfoo()\n"
    assert request["prediction"] == Prediction(text)
    assert request["stream"] is True
    assert request["temperature"] == 0
    assert request["model"] == "m"
    contents = [message["content"] for message in request["messages"]]
    assert sum(content.count(text) for content in contents) == 1
    assert "rename foo to bar" in contents[1]


def test_the_temperature_can_be_left_to_the_endpoint(run_edit: Any, path: Path) -> None:
    _, client = run_edit(ANSWER, path, "x", temperature=None)
    assert "temperature" not in client.request
    _, client = run_edit(ANSWER, path, "x", temperature=0.3)
    assert client.request["temperature"] == 0.3


def test_without_prediction_only_that_key_differs(run_edit: Any, path: Path) -> None:
    _, with_it = run_edit(ANSWER, path, "rename foo to bar")
    _, without = run_edit(ANSWER, path, "rename foo to bar", predict=False)
    assert {**without.request, "prediction": with_it.request["prediction"]} == with_it.request


def test_the_file_comes_back_but_for_the_edit(run_edit: Any, path: Path) -> None:
    edit, client = run_edit(ANSWER, path, "rename foo to bar")
    assert edit.bytes == NEW
    assert edit.text == NEW[3:].decode()
    assert edit.changed
    assert not edit.written
    assert path.read_bytes() == OLD
    assert client.stream.closed


def test_write_replaces_the_file(run_edit: Any, path: Path) -> None:
    edit, _ = run_edit(ANSWER, path, "rename foo to bar", write=True)
    assert edit.written
    assert path.read_bytes() == NEW
    edit.write()
    assert path.read_bytes() == NEW


def test_report_and_text_are_passed_on(run_edit: Any, path: Path) -> None:
    report = Report(target="t", provider="local", model="m")
    last = SimpleNamespace(choices=[], specclient=report)
    heard: list[str] = []
    script = [chunk(reasoning="hmm"), chunk("def bar()"), chunk(":\n pass"), chunk(finish="stop"), last]
    edit, _ = run_edit(script, path, "x", on_text=heard.append)
    assert edit.report is report
    assert heard == ["def bar()", ":\n pass"]


def test_reasoning_never_reaches_the_file(run_edit: Any, path: Path) -> None:
    script = [chunk(reasoning="SECRET THOUGHT"), *(chunk(line) for line in ANSWER.splitlines(True))]
    edit, _ = run_edit([*script, chunk(reasoning="more", finish="stop")], path, "x")
    assert b"THOUGHT" not in edit.bytes
    assert edit.bytes == NEW


@pytest.mark.parametrize("finish", ["length", "content_filter", "tool_calls"])
def test_a_cut_off_answer_never_reaches_the_file(run_edit: Any, path: Path, finish: str) -> None:
    with pytest.raises(IncompleteOutput) as caught:
        run_edit("def bar():\n", path, "x", write=True, force=True, finish=finish)
    assert caught.value.partial == "def bar():\n"
    assert path.read_bytes() == OLD


def test_a_stream_without_an_end_never_reaches_the_file(run_edit: Any, path: Path) -> None:
    with pytest.raises(IncompleteOutput, match="no finish reason"):
        run_edit([chunk("def bar()")], path, "x", write=True)
    assert path.read_bytes() == OLD


def test_an_answer_without_end_is_stopped(run_edit: Any, path: Path) -> None:
    with pytest.raises(IncompleteOutput, match="four times"):
        run_edit([chunk("spam\n" * 1000)] * 100, path, "x", write=True)
    assert run_edit.client.stream.closed
    assert path.read_bytes() == OLD


def test_a_doubtful_answer_needs_force(run_edit: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("\n".join(f"line_{number}()" for number in range(200)))
    answer = "\n".join([*(f"line_{number}()" for number in range(11)), "# ... rest of the file ..."])
    before = path.read_bytes()
    with pytest.raises(EditRefused, match="force") as caught:
        run_edit(answer, path, "x", write=True)
    assert path.read_bytes() == before
    assert {warning.code for warning in caught.value.edit.warnings} == {"elision", "shrunk"}
    edit, _ = run_edit(answer, path, "x", write=True, force=True)
    assert path.read_bytes() == edit.bytes != before


def test_an_unchanged_answer_says_so_and_writes_nothing(run_edit: Any, path: Path) -> None:
    before = path.stat().st_ino
    edit, _ = run_edit(ANSWER.replace("bar", "foo"), path, "x", write=True)
    assert not edit.changed
    assert edit.diff() == ""
    assert path.stat().st_ino == before


def test_a_file_changed_while_the_model_wrote_is_left_alone(run_edit: Any, path: Path) -> None:
    def meddle(_: str) -> None:
        path.write_bytes(b"other\n")

    with pytest.raises(FileError, match="changed by someone else"):
        run_edit(ANSWER, path, "x", write=True, on_text=meddle)
    assert path.read_bytes() == b"other\n"


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"messages": []}, r"^edit\(\) sets \w+ itself\.$"),
        ({"n": 2}, r"^edit\(\) sets \w+ itself\.$"),
        ({"prediction": "x"}, "itself; predict=False sends none"),
        ({"prediction": None}, "itself; predict=False sends none"),
        ({"stream": False}, "itself; on_text"),
    ],
)
def test_what_edit_sets_itself_cannot_be_given(
    run_edit: Any, path: Path, options: dict[str, Any], instead: str
) -> None:
    with pytest.raises(ConfigError, match=instead):
        run_edit(ANSWER, path, "x", **options)


@pytest.mark.parametrize(("kind", "function"), [(Client, edit_file), (AsyncClient, edit_file_async)])
def test_the_clients_edit_takes_what_the_function_takes(kind: Any, function: Any) -> None:
    method = inspect.signature(kind.edit)
    _, *expected = inspect.signature(function).parameters.values()
    _, *found = method.parameters.values()

    assert found == expected
    assert method.return_annotation == inspect.signature(function).return_annotation
    assert found[-1].annotation == "Unpack[EditParams]"


def test_an_edit_passes_on_all_that_create_takes_but_what_it_sets_or_names() -> None:
    own = {"messages", "prediction", "stream", "n", "temperature"}
    assert set(EditParams.__annotations__) == (BODIES["chat"] | set(EXTRAS)) - own


def test_bad_input_is_refused_before_anything_is_sent(run_edit: Any, path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="instruction is empty"):
        run_edit(ANSWER, path, "  ")
    with pytest.raises(FileError, match="does not exist"):
        run_edit(ANSWER, tmp_path / "no.py", "x")
    assert run_edit.client.request == {}


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (OLD, ANSWER),
        (b"a\nb", "a\nc"),
        (b"a\r\nb\nc\n", "a\nb\nC"),
        (b"a\n\n\n", "b"),
        ("é\u2028\x0cx\rz\n".encode(), "e\u2028\x0cx\nz"),
    ],
)
def test_the_diff_is_one_that_git_applies(
    run_edit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes, answer: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.txt").write_bytes(raw)
    edit, _ = run_edit(answer, "f.txt", "x", exact=True)
    patch = edit.diff().encode(edit.image.encoding)
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=patch, check=True, capture_output=True)
    assert Path("f.txt").read_bytes() == edit.bytes


@pytest.mark.parametrize(
    "called", ["absolute", "through a link", "from below", "from elsewhere", "no repository"]
)
def test_git_applies_the_diff_however_the_file_was_called(
    run_edit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    root, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    (root / "src").mkdir(parents=True)
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(root)
    if called != "no repository":
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    path = root / "src" / "f.txt"
    path.write_text("a\n")
    here, name, apply_in = {
        "absolute": (root, path, root),
        "through a link": (root, tmp_path / "link/src/f.txt", root),
        "from below": (root / "src", Path("../src/f.txt"), root / "src"),
        "from elsewhere": (elsewhere, path, root),
        "no repository": (elsewhere, path, Path("/")),
    }[called]
    monkeypatch.chdir(here)
    edit, _ = run_edit("b", name, "x")
    if called == "no repository" and shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    command = ["patch", "-p1"] if called == "no repository" else ["git", "apply", "-"]
    subprocess.run(command, cwd=apply_in, input=edit.diff().encode(), check=True, capture_output=True)
    assert path.read_text() == "b\n"


def test_no_repr_holds_content(run_edit: Any, path: Path) -> None:
    edit, _ = run_edit(ANSWER, path, "rename foo to bar")
    assert "return" not in repr(edit)


def test_a_file_that_fits_the_context_only_once_is_refused_before_the_call(
    run_edit: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SimpleNamespace(
        chat_prompt=lambda messages: [0] * sum(len(message["content"]) for message in messages),
        tokenizer=SimpleNamespace(encode=lambda text: [0] * len(text)),
        max_context=450,
    )
    local = SimpleNamespace(
        target=SimpleNamespace(provider="local", model="m"),
        transport=SimpleNamespace(engine=lambda _model: engine),
    )
    monkeypatch.setattr(FakeClient, "destinations", [local], raising=False)
    run_edit(ANSWER, path, "rename foo to bar")
    path.write_bytes(b"x = 1\n" * 30)
    with pytest.raises(FileError, match=r"180 tokens.*context has 450"):
        run_edit(ANSWER, path, "rename foo to bar")
    assert run_edit.client.request == {}
