"""`specclient edit` against a scripted endpoint: what goes where, and with which exit code."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specclient.core import engines
from specclient_engine.errors import EngineClosed
from tests.client.fake_engine import FakeEngine
from tests.server import ScriptedServer, chunk, error, finish, role, sse, usage_chunk

OLD = "def foo():\r\n    return 1  \r\n\r\nfoo()\r\n"
NEW = OLD.replace("foo", "bar")
ANSWER = "```python\ndef bar():\n    return 1\n\nbar()\n```"
KEY = "sk-sentinel-31337"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mod.py"
    path.write_bytes(OLD.encode())
    return path


@pytest.fixture
def edit(cli: Any, server: ScriptedServer, path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def run(*options: object, answer: str = ANSWER, reason: str = "stop", times: int = 1) -> Any:
        for _ in range(times):
            pieces = [chunk(answer[at : at + 9]) for at in range(0, len(answer), 9)]
            usage = usage_chunk(
                completion_tokens=12,
                completion_tokens_details={"accepted_prediction_tokens": 9, "rejected_prediction_tokens": 1},
            )
            server.play(sse(role(), *pieces, finish(reason), usage))
        target = ("-p", "openai", "-m", "gpt-4o", "--base-url", server.url)
        return cli("edit", path, "-i", "rename foo to bar", *target, *options)

    return run


def test_the_diff_is_the_result_and_applies(edit: Any, path: Path) -> None:
    outcome = edit()
    assert outcome.code == 0, outcome.err
    assert path.read_bytes() == OLD.encode()
    patch = subprocess.run(
        ["git", "apply", "--unsafe-paths", "-p1", "-"], cwd=path.parent, input=outcome.out.encode()
    )
    assert patch.returncode == 0
    assert path.read_bytes() == NEW.encode()


def test_the_file_is_the_prediction_in_the_documented_shape(edit: Any, server: ScriptedServer) -> None:
    edit()
    body = server.requests[0].json
    text = OLD.replace("\r\n", "\n")
    assert body["prediction"] == {"type": "content", "content": text}
    assert sum(message["content"].count(text) for message in body["messages"]) == 1


def test_no_prediction_sends_none(edit: Any, server: ScriptedServer) -> None:
    edit("--no-prediction")
    assert "prediction" not in server.requests[0].json


def test_what_it_bought_goes_to_stderr(edit: Any) -> None:
    outcome = edit()
    assert "forwarded, used" in outcome.err
    assert "9 (provider_usage)" in outcome.err
    assert "forwarded" not in outcome.out


def test_write_replaces_the_file_and_leaves_stdout_empty(edit: Any, path: Path) -> None:
    outcome = edit("--write")
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    assert "written" in outcome.err
    assert path.read_bytes() == NEW.encode()


def test_json_holds_the_edit_and_the_report(edit: Any) -> None:
    outcome = edit("--json")
    value = json.loads(outcome.out)
    assert value["text"] == NEW
    assert value["changed"] is True
    assert value["written"] is False
    assert [warning["code"] for warning in value["warnings"]] == ["kept"]
    assert value["specclient"]["prediction"]["outcome"] == "forwarded"
    assert value["specclient"]["prediction"]["accepted_tokens"] == 9
    assert value["specclient"]["usage"]["completion"] == 12


def test_compare_runs_both_and_shows_them_side_by_side(edit: Any, server: ScriptedServer, path: Path) -> None:
    outcome = edit("--compare", times=2)
    assert outcome.code == 0, outcome.err
    assert ["prediction" in request.json for request in server.requests] == [True, False]
    assert not any("cache_salt" in request.json for request in server.requests)
    assert "no prediction" in outcome.out
    assert "plain decoding" not in outcome.out  # no request can ask a hosted endpoint for it
    assert "not reported" in outcome.out  # a hosted endpoint tells no forward passes, and none are made up
    identical = next(line for line in outcome.out.splitlines() if "outputs identical" in line)
    assert "yes" in identical
    assert path.read_bytes() == OLD.encode()


@pytest.mark.parametrize("as_json", [False, True])
def test_compare_on_the_engine_tells_plain_decoding_from_no_prediction(
    server: ScriptedServer, path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """The engine is scripted: what it is asked for, and under which name its answers are shown."""
    from specclient import Client
    from specclient.cli.compare import compare_edit

    for tokens in (12, 13, 14):
        server.play(sse(role(), chunk(ANSWER), finish(), usage_chunk(completion_tokens=tokens)))
    with Client(provider="openai", model="gpt-4o", base_url=server.url, api_key=KEY) as client:
        engine = SimpleNamespace(chat=client.chat, target=SimpleNamespace(provider="local"))
        compare_edit(engine, path, "rename foo to bar", expected=40, as_json=as_json)
    bodies = [request.json for request in server.requests]
    asked = [("prediction" in body, body.get("speculation")) for body in bodies]
    assert asked == [(True, None), (False, None), (False, "off")]
    assert len({body["cache_salt"] for body in bodies}) == 3
    out = capsys.readouterr().out
    if as_json:
        value = json.loads(out)
        used = [value[arm]["specclient"]["usage"]["completion"] for arm in ("with", "without", "plain")]
        assert used == [12, 13, 14]
        return
    heads = next(line for line in out.splitlines() if "with prediction" in line)
    tokens_of = next(line for line in out.splitlines() if "output tokens" in line)
    arms = ["plain decoding", "no prediction", "with prediction", "over plain", "over none"]
    assert [cell.strip() for cell in heads.strip("┃").split("┃")] == ["", *arms]
    assert [cell.strip() for cell in tokens_of.strip("│").split("│")][1:4] == ["14", "13", "12"]


def test_compare_tells_where_an_endpoint_had_the_prompt_in_its_cache(
    edit: Any, server: ScriptedServer
) -> None:
    for cached in (0, 20):
        usage = usage_chunk(
            prompt_tokens=30, completion_tokens=12, prompt_tokens_details={"cached_tokens": cached}
        )
        server.play(sse(role(), chunk(ANSWER), finish(), usage))
    assert "after it the prompt was in the cache" in edit("--compare", times=0).out
    assert "in the cache" not in edit("--compare", times=2).out


class EditingEngine(FakeEngine):
    """Answers every edit with the new file, whatever is asked, or fails."""

    max_context = 4096

    def __init__(self, **how: Any) -> None:
        super().__init__(ANSWER, **how)
        self.tokenizer.encode = lambda text: list(text.encode())  # type: ignore[attr-defined]

    def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def on_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[EditingEngine], None]]:
    """Makes the command line load this engine."""
    from specclient_engine import Engine

    def use(engine: EditingEngine) -> None:
        monkeypatch.setattr(Engine, "load", lambda *_, **__: engine)

    yield use
    engines.close_all()


def test_compare_gives_every_run_on_the_engine_a_salt_and_none_the_loading(
    cli: Any, path: Path, on_engine: Any
) -> None:
    on_engine(engine := EditingEngine())
    for as_json in ((), ("--json",)):
        outcome = cli("edit", path, "-i", "rename foo to bar", "-p", "local", "--compare", *as_json)
        assert outcome.code == 0, outcome.err
        assert "in the cache" not in outcome.out
    salts = [request.cache_salt for request in engine.requests]
    assert len(set(salts)) == 6
    assert all(salt and len(salt) >= 43 and salt not in outcome.out + outcome.err for salt in salts)
    arms = [(bool(request.predictions), request.speculation) for request in engine.requests]
    assert arms == 2 * [(True, "auto"), (False, "auto"), (False, "off")]
    value = json.loads(outcome.out)
    assert [value[arm]["specclient"]["timing"]["client"]["load"] for arm in ("with", "without", "plain")] == [
        None, None, None,
    ]  # fmt: skip


def test_compare_asks_no_fallback(
    cli: Any, path: Path, server: ScriptedServer, on_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_engine(EditingEngine(fail=EngineClosed("closed")))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (path.parent / "specclient.toml").write_text(
        '[targets.mine]\nprovider = "local"\nfallback = ["hosted"]\n'
        f'[targets.hosted]\nprovider = "openai"\nmodel = "gpt-4o"\nbase_url = "{server.url}"\n'
    )
    outcome = cli("edit", path, "-i", "rename foo to bar", "-t", "mine", "--compare")
    assert outcome.code == 1
    assert "The embedded engine failed: closed" in outcome.err
    assert server.requests == []
    server.play(sse(role(), chunk(ANSWER), finish()))
    assert cli("edit", path, "-i", "rename foo to bar", "-t", "mine").code == 0
    assert len(server.requests) == 1


def test_compare_writes_nothing_and_says_so(edit: Any, server: ScriptedServer) -> None:
    outcome = edit("--compare", "--write")
    assert outcome.code == 2
    assert "writes nothing" in outcome.err
    assert server.requests == []


def test_the_temperature_is_0_or_the_endpoints_own(edit: Any, server: ScriptedServer) -> None:
    edit()
    edit("--own-temperature")
    first, second = (request.json for request in server.requests)
    assert first["temperature"] == 0
    assert "temperature" not in second


def test_compare_as_json_holds_both_runs(edit: Any) -> None:
    value = json.loads(edit("--compare", "--json", times=2).out)
    assert value["outputs_identical"] is True
    assert value["without"]["text"] == value["with"]["text"] == NEW


def test_a_cut_off_answer_exits_1_and_leaves_the_file(edit: Any, path: Path) -> None:
    outcome = edit("--write", "--force", answer="def bar():\n", reason="length")
    assert outcome.code == 1
    assert "length limit" in outcome.err
    assert path.read_bytes() == OLD.encode()


def test_a_doubtful_answer_exits_1_until_forced(edit: Any, path: Path) -> None:
    path.write_text("\n".join(f"line_{number}()" for number in range(60)))
    before = path.read_bytes()
    outcome = edit("--write", answer="line_0()\n# ... rest of the file ...")
    assert outcome.code == 1
    assert "--force" in outcome.err
    assert path.read_bytes() == before
    assert edit("--write", "--force", answer="line_0()\n# ... rest of the file ...").code == 0
    assert path.read_bytes() != before


def test_a_diff_to_be_looked_at_exits_1_until_forced(edit: Any, path: Path) -> None:
    path.write_text("\n".join(f"line_{number}()" for number in range(60)))
    for options in ((), ("--json",)):
        outcome = edit(*options, answer="line_0()\n# ... rest of the file ...")
        assert (outcome.code, "-line_1()" in outcome.out) == (1, True)
        assert outcome.err.endswith("look at the diff before you use it; --write would need --force.\n")
        assert edit(*options, "--force", answer="line_0()\n# ... rest of the file ...").code == 0


def test_what_could_not_be_written_is_shown_all_the_same(
    edit: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model worked for it, perhaps for minutes."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    for options in ((), ("--json",)):
        outcome = edit("--write", *options)
        assert outcome.code == 1
        assert outcome.err.splitlines()[-1].endswith("as it was: No space left on device.")
        assert path.read_bytes() == OLD.encode()
        if options:
            value = json.loads(outcome.out)
            assert (value["error"]["type"], value["edit"]["text"]) == ("WriteFailed", NEW)
        else:
            assert "+def bar():" in outcome.out


def test_a_refused_answer_is_shown_and_a_cut_off_one_kept_for_scripts(edit: Any, path: Path) -> None:
    doubtful = "Sure!\nbar = 1"
    path.write_text("\n".join(f"line_{number}()" for number in range(60)))
    assert "+bar = 1" in edit("--write", answer=doubtful).out
    value = json.loads(edit("--write", "--json", answer="def bar", reason="length").out)
    assert (value["error"]["type"], value["partial"]) == ("IncompleteOutput", "def bar")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_no_text_is_no_traceback(process: Any, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"b\xffd.py")).write_text("foo = 1\n")
    target = ("-p", "openai_compatible", "-m", "m", "--base-url", server.url)
    for options in ((), ("--json",), ("--write",)):
        server.play(sse(chunk("bar = 1"), finish()))
        done = process("edit", os.fsdecode(b"b\xffd.py"), "-i", "x", *target, *options, errors="replace")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / os.fsdecode(b"b\xffd.py")).read_text() == "bar = 1\n"


def test_a_file_that_changes_meanwhile_exits_1(
    edit: Any, path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specclient.edit.extract import extract

    def meddle(*arguments: Any) -> Any:
        path.write_bytes(b"somebody else's\n")
        return extract(*arguments)

    monkeypatch.setattr("specclient.edit.run.extract", meddle)
    outcome = edit("--write")
    assert outcome.code == 1
    assert "changed by someone else" in outcome.err
    assert "+def bar():" in outcome.out
    assert path.read_bytes() == b"somebody else's\n"


def test_an_unchanged_answer_says_so(edit: Any) -> None:
    outcome = edit(answer=OLD.replace("\r\n", "\n"))
    assert outcome.code == 0
    assert outcome.out == ""
    assert "as it was" in outcome.err


def test_an_error_of_the_endpoint_exits_1_without_the_key(
    cli: Any, server: ScriptedServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.play(error(401, f"bad key {KEY}"))
    outcome = cli("edit", path, "-i", "x", "-p", "openai", "-m", "gpt-4o", "--base-url", server.url, "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out)["error"]["type"] == "AuthenticationError"
    assert KEY not in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (None, (), "does not exist"),
        (b"", (), "is empty"),
        (b"a\0b", (), "binary"),
        (b"caf\xe9", (), "name its encoding"),
        (b"a\n", ("--encoding", "klingon"), "not an encoding"),
    ],
)
def test_a_bad_file_exits_2_before_anything_is_sent(
    cli: Any, server: ScriptedServer, tmp_path: Path, make: bytes | None, options: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "f.txt"
    if make is not None:
        path.write_bytes(make)
    target = ("-p", "openai_compatible", "-m", "m", "--base-url", server.url)
    outcome = cli("edit", path, "-i", "x", *target, *options)
    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert server.requests == []


def test_a_directory_an_unknown_target_and_a_missing_key_exit_2(cli: Any, path: Path, tmp_path: Path) -> None:
    for arguments, words in [
        ((tmp_path, "-i", "x"), "is a directory"),
        ((path, "-i", "x", "-t", "nope"), "nope"),
        ((path, "-i", "x", "-p", "nope"), "No provider is called"),
        ((path, "-i", "x", "-p", "fireworks", "-m", "m"), "FIREWORKS_API_KEY"),
        ((path, "-p", "fireworks"), "either --instruction or --instruction-file"),
        ((path, "-i", "x", "-p", "local", "-m", tmp_path / "none.gguf"), "no model"),
    ]:
        outcome = cli("edit", *arguments)
        assert outcome.code == 2, outcome.err
        assert words in outcome.err


def test_the_instruction_may_come_from_a_file_or_stdin(
    cli: Any, server: ScriptedServer, path: Path, process: Any
) -> None:
    target = ("-p", "openai_compatible", "-m", "m", "--base-url", server.url)
    (path.parent / "todo.txt").write_text("rename foo to bar\n")
    for _ in range(2):
        server.play(sse(chunk(ANSWER), finish()))
    assert cli("edit", path, "--instruction-file", path.parent / "todo.txt", *target).code == 0
    done = process("edit", path, "-i", "-", *target, input="rename foo to bar\n")
    assert done.returncode == 0, done.stderr
    first, second = (request.json["messages"] for request in server.requests)
    assert first == second
