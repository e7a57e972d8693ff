"""`serve` and `launch`: the address, the token, the tool's environment, and an end in good order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("uvicorn")

from specclient.cli import surroundings
from specclient.cli.launch import environment
from specclient.config.serving import DEFAULT_PORT
from specclient_providers import resolve
from tests.server import ScriptedServer, Stall, chunk, completion, finish, reply, sse

MAIN = "from specclient.cli.main import main; main()"
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"
ASK = """
import json, os, urllib.request
body = {"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": "hi"}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
)
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""


def config(folder: Path, server: ScriptedServer) -> None:
    target = f'provider = "openai_compatible"\nmodel = "m"\nbase_url = "{server.url}"\n'
    (folder / "specclient.toml").write_text(f'default = "mine"\n[targets.mine]\n{target}')


def test_a_launched_tool_is_answered_by_the_target(
    process: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    config(tmp_path, server)
    server.play(reply(completion("Hello from the target")))
    done = process("launch", "-t", "mine", sys.executable, "-c", ASK, "--model", "the tool's own")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Hello from the target\n"
    assert server.requests[0].json["model"] == "m"


def test_the_tools_exit_code_is_returned_and_the_token_is_new(
    process: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    config(tmp_path, server)
    first, second = (process("launch", "--", sys.executable, "-c", PRINT_ENVIRONMENT) for _ in range(2))
    seen = json.loads(first.stdout)
    assert seen["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert seen["OPENAI_API_KEY"] != json.loads(second.stdout)["OPENAI_API_KEY"]
    assert seen["OPENAI_API_KEY"] not in first.stderr
    assert surroundings.WAITING not in seen  # what is set for the engine is not for the tool
    assert process("launch", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    killed = process("launch", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 15)")
    assert killed.returncode == 128 + 15


def test_what_ends_the_launcher_ends_the_tool(server: ScriptedServer, tmp_path: Path) -> None:
    config(tmp_path, server)
    tool = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "launch", "--", sys.executable, "-c", tool],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        number = int(child.stdout.readline())
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 128 + signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_a_tool_that_is_not_there_is_one_sentence(
    process: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    config(tmp_path, server)
    done = process("launch", "--", "no-such-tool")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no-such-tool cannot be started")
    assert "Traceback" not in done.stderr


def test_known_tools_get_their_own_names() -> None:
    common = environment("/usr/bin/some-tool", "http://127.0.0.1:1/v1", "t", "local")
    assert common["OPENAI_BASE_URL"] == common["OPENAI_API_BASE"] == "http://127.0.0.1:1/v1"
    assert environment("aider", "u", "t", "local")["AIDER_MODEL"] == "openai/local"
    goose = environment("goose", "http://127.0.0.1:1/v1", "t", "local")
    assert (goose["OPENAI_HOST"], goose["GOOSE_MODEL"]) == ("http://127.0.0.1:1", "local")


def test_serve_tells_its_address_and_ends_when_told(server: ScriptedServer, tmp_path: Path) -> None:
    config(tmp_path, server)
    server.play(sse(chunk("Hi"), finish()))
    child = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--port", "0"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    url = child.stdout.readline().strip()
    body = {"model": "mine", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    answer = httpx.post(f"{url}/chat/completions", json=body)
    assert '"Hi"' in answer.text
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize("again", [True, False], ids=["a second time", "once"])
def test_an_answer_that_outlasts_the_server_is_told_so(
    server: ScriptedServer, tmp_path: Path, again: bool
) -> None:
    config(tmp_path, server)
    seconds = 60 if again else 0
    with (tmp_path / "specclient.toml").open("a") as file:
        file.write(f"[serve]\nshutdown_seconds = {seconds}\n")
    server.play(sse(chunk("Hi"), Stall()))
    child = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--port", "0"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stderr is not None
    url = child.stdout.readline().strip()
    assert child.stderr.readline().startswith("serving")
    body = {"model": "mine", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    with httpx.stream("POST", f"{url}/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        assert '"Hi"' in next(lines)
        child.send_signal(signal.SIGINT)
        told = child.stderr.readline()
        assert told == (f"1 answer is under way and may take {seconds} s more; Ctrl-C again stops now\n")
        if again:
            child.send_signal(signal.SIGINT)
        last = [line for line in lines if line][-1]
    assert "The server stops and cannot end this answer." in last
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Traceback" not in err


def test_the_provider_specclient_is_where_serve_listens() -> None:
    assert resolve("specclient").base_url == f"http://127.0.0.1:{DEFAULT_PORT}/v1"


def test_serve_refuses_what_it_should_not_do(process: Any, server: ScriptedServer, tmp_path: Path) -> None:
    config(tmp_path, server)
    everyone = process("serve", "--host", "0.0.0.0", "--port", "0")
    assert everyone.returncode == 2
    assert "token" in everyone.stderr


def test_a_taken_port_is_one_sentence_before_the_engine_is_loaded(
    cli: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specclient.cli.clients.load_engine", lambda _: pytest.fail("the engine was loaded"))
    port = httpx.URL(server.url).port
    outcome = cli("serve", "--port", port)
    assert (outcome.code, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    assert line.startswith(
        f"error: Cannot listen on 127.0.0.1:{port}: the port is taken. Give another by --port"
    )


def test_without_its_libraries_serve_says_what_to_install(tmp_path: Path) -> None:
    code = f"import sys; sys.modules['uvicorn'] = None; {MAIN}"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ),
    )
    assert done.returncode == 2
    assert "pip install 'specclient[serve]'" in done.stderr
