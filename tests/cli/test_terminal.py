"""Manners: streams, colours, progress, exit codes, and a start that loads nothing it does not need."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from specclient.report import Report, Speculation, Usage
from tests.server import ScriptedServer, Stall, chunk, finish, role, sse

MAIN = "from specclient.cli.main import main; main()"


def target(server: ScriptedServer) -> tuple[str, ...]:
    return ("-p", "openai_compatible", "-m", "m", "--base-url", server.url)


def on_terminal(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None, code: str = MAIN
) -> tuple[int, str]:
    """Run a command on a pseudo-terminal; its exit code and everything it drew."""
    leader, follower = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **(env or {})}
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=follower, stdout=follower, stderr=follower, cwd=cwd, env=variables,
    )  # fmt: skip
    os.close(follower)
    drawn = b""
    while True:
        ready, _, _ = select.select([leader], [], [], 30)
        assert ready, "the command drew nothing for 30 seconds"
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not piece:
            break
        drawn += piece
    os.close(leader)
    return child.wait(10), drawn.decode()


def test_the_text_is_shown_while_it_comes_and_gone_at_the_end(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    server.play(sse(role(), chunk("bar = "), chunk("1"), finish()))
    code, drawn = on_terminal("edit", "a.py", "-i", "rename", *target(server), cwd=tmp_path)
    assert code == 0, drawn
    assert "a.py, with prediction" in drawn
    assert "\x1b[32m+bar = 1" in drawn  # the diff in colour
    assert "\x1b[?25h" in drawn  # the cursor is back


ENGINE = """
import sys
from specclient_engine import Engine, errors
from specclient_engine.api import Progress

def load(model, progress, **options):
    name = "tiny-0123456789ab-v1"
    progress(Progress("load", name, 0, 1, "steps"))
    progress(Progress("load", name, 3, 24, "tensors"))
    progress(Progress("load", name, 1, 1, "steps"))
    raise errors.ModelCorrupt("stop here")

Engine.load = load
from specclient.cli.main import main
main()
"""


def test_getting_the_engine_ready_is_shown_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    code, drawn = on_terminal(
        "edit", "a.py", "-i", "x", "-p", "local", cwd=tmp_path, code=ENGINE, env={"COLUMNS": "80"}
    )
    assert code == 1
    assert drawn.index("starting the engine") < drawn.index("loading tiny")
    assert "of 1 step" not in drawn
    assert "0123456789ab" not in drawn
    assert drawn.rstrip().endswith("error: stop here")


def test_a_conversion_is_one_sentence_where_there_is_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    tensors = "".join(f"progress(Progress('convert', 'blk.{n}', {n}, 9, 'tensors'));" for n in range(9))
    code = ENGINE.replace("    progress(Progress", f"    {tensors}\n    progress(Progress", 1)
    command = [sys.executable, "-c", code, "edit", "a.py", "-i", "x", "-p", "local"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    told = ["converting the weights", "loading tiny", "error: stop here"]
    assert done.stderr.splitlines() == told


def test_a_terminal_that_cannot_be_drawn_upon_is_told_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    arguments = ("edit", "a.py", "-i", "x", "-p", "local")
    _, drawn = on_terminal(*arguments, cwd=tmp_path, code=ENGINE, env={"TERM": "dumb"})
    assert drawn.split("\r\n") == ["loading tiny", "error: stop here", ""]


def test_a_measurement_is_told_line_by_line_there_too(server: ScriptedServer, tmp_path: Path) -> None:
    server.respond = lambda _: sse(role(), chunk("x"), finish())
    arguments = ("bench", "--repeats", "1", "-w", "code_edit", *target(server))
    _, drawn = on_terminal(*arguments, cwd=tmp_path, env={"TERM": "dumb"})
    assert "done: " in drawn, drawn


def test_no_color_is_obeyed(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    server.play(sse(chunk("bar = 1"), finish()))
    _, drawn = on_terminal(
        "edit", "a.py", "-i", "rename", *target(server), cwd=tmp_path, env={"NO_COLOR": "1"}
    )
    assert "+bar = 1" in drawn
    assert not re.search(r"\x1b\[(?:\d+;)*3\dm", drawn)


def test_without_a_terminal_there_is_no_progress_and_no_colour(
    cli: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    server.play(sse(chunk("bar = 1"), finish()))
    outcome = cli("edit", "a.py", "-i", "rename", *target(server))
    assert "\x1b" not in outcome.out + outcome.err
    assert "with prediction" not in outcome.err


def test_an_interrupt_exits_130_and_leaves_the_file(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    server.play(sse(role(), chunk("bar"), Stall()))
    command = [sys.executable, "-c", MAIN, "edit", "a.py", "-i", "x", "--write", *target(server)]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    server.wait_for(lambda running: len(running.requests) == 1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Traceback" not in err
    assert (tmp_path / "a.py").read_text() == "foo = 1\n"


def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -c '{MAIN}' providers --json | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout == "[\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence(tmp_path: Path) -> None:
    command = f"{sys.executable} -c '{MAIN}' providers --json > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "disk is full" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("arguments", ["--help", "--version", "config --help", "config show", "models list"])
def test_nothing_that_a_full_disk_does_not_take_is_a_traceback(tmp_path: Path, arguments: str) -> None:
    command = f"{sys.executable} -c '{MAIN}' {arguments} > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "disk is full" in done.stderr


def test_a_full_disk_behind_stderr_loses_no_result(tmp_path: Path) -> None:
    (tmp_path / "specclient.toml").write_text('[targets.a]\nprovider = "local"\nfallback = ["b"]\n')
    command = f"{sys.executable} -c '{MAIN}' config show 2> /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, "[targets.a]" in done.stdout) == (0, True)


def test_what_stdout_cannot_hold_is_one_sentence(process: Any, server: ScriptedServer) -> None:
    server.respond = lambda _: sse(role(), chunk("price: 5 €"), finish())
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = process("chat", "hi", *target(server), env=env)
    assert done.returncode == 2
    assert done.stderr == "error: stdout is iso8859-1, which has no '\\u20ac': set PYTHONIOENCODING=utf-8.\n"
    done = process("chat", "hi", *target(server), "--json", env=env)
    assert (done.returncode, "\\u20ac" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("errors", "said"),
    [("strict", "is no utf-8 text"), ("surrogateescape", "holds a byte that is no UTF-8 text")],
)
def test_what_is_typed_and_is_no_text_is_one_sentence(
    server: ScriptedServer, tmp_path: Path, errors: str, said: str
) -> None:
    code = f"import sys; sys.stdin.isatty = lambda: True; {MAIN}"
    command = [sys.executable, "-c", code, "chat", *target(server)]
    env = {**os.environ, "PYTHONIOENCODING": f"utf-8:{errors}"}
    done = subprocess.run(command, input=b"caf\xe9\n", capture_output=True, cwd=tmp_path, timeout=60, env=env)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert done.stderr.decode().startswith(f"error: What was typed {said}")
    assert not server.requests


def test_what_is_typed_in_utf8_arrives_under_an_ascii_locale(
    process: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "a.ini").write_text("port = 1\n")
    server.respond = lambda _: sse(role(), chunk("port = 2\n"), finish())
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert process("edit", "a.ini", "-i", "Größe: 2", *target(server), env=env).returncode == 0
    assert process("chat", "größer?", "-s", "Kürze.", *target(server), env=env).returncode == 0
    explained = process("explain", "--file", "a.ini", "-i", "Größe", "--json", *target(server), env=env)
    assert "Instruction: Größe\n" in json.loads(explained.stdout)["body"]["messages"][1]["content"]
    edit, chat = (request.json["messages"] for request in server.requests)
    assert "Instruction: Größe: 2\n" in edit[1]["content"]
    assert [message["content"] for message in chat] == ["Kürze.", "größer?"]


def test_closed_streams_are_no_traceback(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo = 1\n")
    server.play(sse(role(), chunk("bar = 1\n"), finish()))
    words = shlex.join([sys.executable, "-c", MAIN, "edit", "a.py", "-i", "x", "--write", *target(server)])
    done = subprocess.run(["bash", "-c", f"{words} >&- 2>&-"], cwd=tmp_path, timeout=60)
    assert done.returncode == 0
    assert (tmp_path / "a.py").read_text() == "bar = 1\n"


def test_help_loads_no_library_that_a_command_needs(process: Any) -> None:
    done = process("--help")
    assert done.returncode == 0
    code = textwrap.dedent(
        """
        import sys
        from specclient.cli import app
        heavy = {"torch", "transformers", "tiktoken", "httpx", "pydantic", "starlette", "uvicorn", "plotly",
                 "opentelemetry", "numpy", "asyncio", "rich", "specclient.client", "specclient_engine"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; {MAIN}"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == f"The command line needs {missing}: pip install 'specclient[cli]'.\n"


@pytest.mark.parametrize(
    ("tokens", "passes", "line"),
    [
        (1, 1, "1 token in 1 forward pass, 1.0 a pass"),
        (5, 1, "5 tokens in 1 forward pass, 5.0 a pass"),
        (1200, 300, "1,200 tokens in 300 forward passes, 4.0 a pass"),
        (5, 0, None),
    ],
)
def test_tokens_and_passes_are_counted_in_words(tokens: int, passes: int, line: str | None) -> None:
    from specclient.cli.account import passes_line

    report = Report(
        target="t",
        provider="local",
        usage=Usage(completion=tokens),
        speculation=Speculation(forward_passes=passes),
    )
    assert passes_line(report) == line


def test_usage_errors_exit_2(cli: Any) -> None:
    assert cli("edit").code == 2
    assert cli("nonsense").code == 2
    assert cli("chat", "hi", "--max-tokens", "0").code == 2


def test_the_version_is_the_packages(cli: Any) -> None:
    from specclient import __version__

    assert cli("--version").out == f"specclient {__version__}\n"
