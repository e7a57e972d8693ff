"""The commands that need no model: chat against a script, and the ones that need no network at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server import ScriptedServer, chunk, finish, role, sse

KEY = "sk-sentinel-31337"
CONFIG = """
default = "prod"
[targets.prod]
provider = "fireworks"
model = "accounts/x"
api_key = "sk-sentinel-31337"
fallback = ["spare"]
[targets.spare]
provider = "cerebras"
model = "gpt-oss-120b"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "specclient.toml"
    path.write_text(CONFIG)
    return path


def test_chat_streams_the_answer_to_stdout_and_reasoning_to_stderr(cli: Any, server: ScriptedServer) -> None:
    server.play(sse(role(), chunk(reasoning_content="hmm "), chunk("Hel"), chunk("lo"), finish()))
    outcome = cli(
        "chat", "hi", "-s", "be short", "-p", "openai_compatible", "-m", "m", "--base-url", server.url
    )
    assert outcome.code == 0
    assert outcome.out == "Hello\n"
    assert "hmm" in outcome.err
    roles = [(message["role"], message["content"]) for message in server.requests[0].json["messages"]]
    assert roles == [("system", "be short"), ("user", "hi")]


def test_chat_json_holds_answer_and_report(cli: Any, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("Hello")
    server.play(sse(chunk("Hello"), finish()))
    target = ("-p", "openai_compatible", "-m", "m", "--base-url", server.url)
    outcome = cli("chat", "hi", "--prediction-file", "known.txt", *target, "--json")
    value = json.loads(outcome.out)
    assert (value["content"], value["finish_reason"]) == ("Hello", "stop")
    assert value["specclient"]["prediction"]["outcome"] == "withheld"
    assert "prediction" not in server.requests[0].json


def test_a_conversation_keeps_what_was_said(process: Any, server: ScriptedServer) -> None:
    server.play(sse(chunk("one"), finish()), sse(chunk("two"), finish()))
    code = "import sys; sys.stdin.isatty = lambda: True; from specclient.cli.main import main; main()"
    import subprocess
    import sys

    arguments = ["chat", "-p", "openai_compatible", "-m", "m", "--base-url", server.url]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input="first\n\nsecond\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    contents = [message["content"] for message in server.requests[1].json["messages"]]
    assert contents == ["first", "one", "second"]


def test_chat_without_a_question_is_a_usage_error(process: Any) -> None:
    done = process("chat", "-p", "local", input="  \n")
    assert done.returncode == 2
    assert "no question" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("chat", "caf\udce9"), "PROMPT"),
        (("chat", "hi", "-s", "caf\udce9"), "--system"),
        (("chat", "hi", "--prediction", "caf\udce9"), "--prediction"),
        (("edit", "a.py", "-i", "caf\udce9"), "--instruction"),
        (("explain", "--file", "a.py", "-i", "caf\udce9"), "--instruction"),
    ],
)
def test_bytes_that_are_no_text_are_told_for_people(
    cli: Any, server: ScriptedServer, tmp_path: Path, arguments: tuple[str, ...], option: str
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    outcome = cli(*arguments, "-p", "openai_compatible", "-m", "m", "--base-url", server.url)
    assert outcome.code == 2
    assert outcome.err == (
        f"error: {option} holds a byte that is no UTF-8 text (0xE9 at 3): convert it first.\n"
    )
    assert not server.requests


def test_chat_leaves_the_model_to_our_own_server(cli: Any, server: ScriptedServer) -> None:
    server.play(sse(chunk("Hello"), finish()))
    outcome = cli("chat", "hi", "-p", "specclient", "--base-url", server.url)
    assert (outcome.code, outcome.out) == (0, "Hello\n")
    assert "model" not in server.requests[0].json
    refused = cli("chat", "hi", "-p", "openai_compatible", "--base-url", server.url)
    assert (refused.code, "No model for target" in refused.err) == (2, True)


def test_providers_lists_all_and_shows_one(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from specclient_providers import provider_names

    everything = json.loads(cli("providers", "--json").out)
    assert [row["provider"] for row in everything] == list(provider_names())
    one = cli("providers", "openai", "--model", "gpt-4o", "--on", "2027-01-14").out
    assert "ended on 2027-01-14" in one
    assert "https://" in one
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.rstrip() for line in cli("providers").out.splitlines()]
    assert max(map(len, lines)) <= 80
    words = [line.split() for line in lines if not line.startswith(" ")]
    names = [first for first, *_ in words[1:]]
    assert sorted(names) == list(provider_names())
    assert names.index("openai") < names.index("vllm") < names.index("anthropic")
    assert all(line[19:20] != " " for line in lines)


@pytest.mark.parametrize("width", [40, 50, 60, 72, 100])
def test_providers_keeps_the_prediction_on_a_narrow_terminal(
    cli: Any, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = cli("providers")
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split()[:2] == ["provider", "prediction"]
    assert "..." not in outcome.out
    assert "…" not in outcome.out
    assert ("timings" in lines[0]) == ("timings" not in outcome.err)


def test_providers_refuses_what_it_does_not_know(cli: Any) -> None:
    assert cli("providers", "fierworks").code == 2
    assert cli("providers", "--on", "soon").code == 2
    outcome = cli("providers", "--api", "respones")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--api is one of chat, completions, responses" in outcome.err


def test_explain_keeps_a_long_reason_apart_from_the_body(cli: Any) -> None:
    told = cli("explain", "-p", "openai", "-m", "gpt-5.1").out.split("\n")
    reason = told[told.index("prediction: withheld") + 1 : told.index("body, against what was asked:")]
    assert len(reason) > 1
    assert all(line.startswith("  ") for line in reason)


def test_explain_prints_body_outcome_and_reasons_without_network(cli: Any) -> None:
    outcome = cli("explain", "-p", "groq", "-m", "gpt-oss-120b")
    assert outcome.code == 0
    assert "prediction: withheld" in outcome.out
    assert any(line.startswith("-") and '"prediction"' in line for line in outcome.out.splitlines())
    value = json.loads(cli("explain", "-p", "openai", "-m", "gpt-4o", "--json").out)
    assert value["outcome"] == "forwarded"
    assert value["body"]["prediction"]["type"] == "content"
    assert value["reasons"][0]["source"].startswith("https://")


def test_explain_shows_bodies_that_are_json(cli: Any, tmp_path: Path) -> None:
    request = {"model": "gpt-4o", "messages": [], "prediction": "x", "max_tokens": 3}
    (tmp_path / "request.json").write_text(json.dumps(request))
    shown = cli("explain", "request.json", "-p", "openai").out.partition("asked:\n")[2].splitlines()
    planned = json.loads(cli("explain", "request.json", "-p", "openai", "--json").out)["body"]
    assert json.loads("\n".join(line[2:] for line in shown if line[0] != "+")) == request
    assert json.loads("\n".join(line[2:] for line in shown if line[0] != "-")) == planned
    assert [line for line in shown if line[0] != " "], "the prediction has OpenAI's shape in what is sent"


def test_explain_takes_a_request_or_a_file(cli: Any, tmp_path: Path) -> None:
    request = {"model": "gpt-4o", "messages": [], "tools": [{"type": "function"}], "prediction": "x"}
    (tmp_path / "request.json").write_text(json.dumps(request))
    value = json.loads(cli("explain", "request.json", "-p", "openai", "--json").out)
    assert value["outcome"] == "withheld"
    assert value["body"]["tools"] == request["tools"]
    (tmp_path / "a.py").write_text("x = 1\n")
    value = json.loads(cli("explain", "--file", "a.py", "-p", "openai", "-m", "gpt-4o", "--json").out)
    assert value["body"]["prediction"]["content"] == "x = 1\n"
    (tmp_path / "bad.json").write_text("{")
    assert cli("explain", "bad.json", "-p", "openai").code == 2


def test_explain_refuses_what_is_no_request_and_tells_strange_keys(cli: Any, tmp_path: Path) -> None:
    def explain(request: Any, *more: str) -> Any:
        (tmp_path / "r.json").write_text(json.dumps(request))
        return cli("explain", "r.json", "-p", "openai", "-m", "gpt-4o", *more)

    assert explain({"messages": []}, "--api", "respones").code == 2
    said = explain({"messages": "x"})
    assert (said.code, said.err) == (
        2,
        "error: messages is a list of objects with role and content, not str.\n",
    )
    told = explain({"messages": [], "max_tokenss": 3, "own": 1})
    assert told.code == 0
    assert (
        "max_tokenss is no parameter of OpenAI's and would be sent as it stands; did you mean max_tokens?"
        in told.err
    )
    assert "own is no parameter of OpenAI's and would be sent as it stands." in told.err
    assert explain({"prompt": "x", "best_of": 1}, "--api", "completions").err == ""


def test_explain_knows_the_parameters_of_the_embedded_engine(cli: Any, tmp_path: Path) -> None:
    def explain(**own: Any) -> Any:
        (tmp_path / "r.json").write_text(json.dumps({"messages": [], **own}))
        return cli("explain", "r.json", "-p", "local")

    assert explain(cache_salt="a", speculation="off", min_p=0.1, top_k=4).err == ""
    said = explain(cache_sallt="a").err
    assert said.startswith("cache_sallt is no parameter of the embedded engine's and would be refused; ")
    assert "did you mean cache_salt?" in said
    assert "reasoning_effort is no parameter of the embedded" in explain(reasoning_effort="high").err


@pytest.mark.parametrize(("api", "known"), [("chat", "messages"), ("completions", "prompt")])
def test_explain_knows_every_parameter_that_create_takes(
    cli: Any, tmp_path: Path, api: str, known: str
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    for arguments in ((), ("--file", "a.py")):
        assert cli("explain", *arguments, "-p", "openai", "-m", "gpt-4.1-mini").err == ""
    request = {
        known: [],
        "model": "gpt-4.1-mini",
        "prediction": {"type": "content", "content": "x"},
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    (tmp_path / "r.json").write_text(json.dumps(request))
    assert cli("explain", "r.json", "-p", "openai", "--api", api).err == ""
    (tmp_path / "r.json").write_text(json.dumps({known: [], "predction": "x", "steam": True}))
    told = cli("explain", "r.json", "-p", "openai", "-m", "gpt-4.1-mini", "--api", api).err
    assert "predction is no parameter of OpenAI's" in told
    assert "did you mean prediction?" in told
    assert "did you mean stream?" in told


def test_explain_says_that_no_model_was_named(cli: Any) -> None:
    out = " ".join(cli("explain", "-p", "openai").out.split())
    assert "OpenAI documents predictions for some of its models, and none is named." in out


def test_explain_shows_no_change_where_only_the_order_differs(cli: Any, tmp_path: Path) -> None:
    request = {"max_tokens": 20, "messages": [], "model": "m", "prediction": "x", "stop": ["a"]}
    for order in (list(request), list(reversed(request))):
        (tmp_path / "order.json").write_text(json.dumps({key: request[key] for key in order}))
        lines = cli("explain", "order.json", "-p", "groq").out.replace(",\n", "\n").splitlines()
        assert [line for line in lines if line[:1] in ("+", "-")] == ['-   "prediction": "x"']


def test_explain_is_what_the_client_sends(
    cli: Any, server: ScriptedServer, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "a.py").write_text("x = 1\n")
    target = ("-p", "openai", "-m", "gpt-4o", "--base-url", server.url)
    told = json.loads(cli("explain", "--file", "a.py", "-i", "rename x", *target, "--json").out)["body"]
    server.play(sse(chunk("y = 1"), finish()))
    assert cli("edit", "a.py", "-i", "rename x", *target).code == 0
    assert server.requests[0].json == told


def test_config_show_has_origins_and_no_secrets(cli: Any, config: Path) -> None:
    outcome = cli("config", "show")
    assert "[targets.prod]" in outcome.out
    assert outcome.code == 0
    assert KEY not in outcome.out + outcome.err
    assert "accounts/x" in outcome.out
    value = json.loads(cli("config", "show", "-t", "prod", "--json").out)
    assert value["default"] == "prod"
    assert "specclient.toml" in value["targets"]["prod"]["model"]["origin"]
    assert KEY not in json.dumps(value)


def test_config_show_shows_what_a_call_gets(cli: Any, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCLIENT_MODEL", "zzz")
    value = json.loads(cli("config", "show", "--json").out)
    assert value["targets"]["prod"]["model"] == {"value": "zzz", "origin": "SPECCLIENT_MODEL"}
    named = json.loads(cli("config", "show", "-t", "prod", "--json").out)
    assert named["targets"]["prod"]["model"]["value"] == "accounts/x"
    monkeypatch.setenv("SPECCLIENT_TARGET", "local")
    told = cli("config", "show").out
    assert "default  local  (SPECCLIENT_TARGET)" in told
    assert "[targets.local]" in told


def test_config_check_names_what_is_wrong(cli: Any, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = cli("config", "check")
    assert outcome.code == 2
    assert "prod: ok" in outcome.out
    assert "spare: No API key" in outcome.out
    monkeypatch.setenv("CEREBRAS_API_KEY", "k")
    assert cli("config", "check").code == 0
    config.write_text(CONFIG.replace('"cerebras"', '"cerebrass"'))
    assert "No provider is called" in json.loads(cli("config", "check", "--json").out)["problems"]["spare"]


def test_config_show_complains_of_impossible_values(cli: Any, config: Path) -> None:
    config.write_text(
        CONFIG.replace('"cerebras"', '"cerebrass"').replace('default = "prod"', 'default = "prd"')
        + '[tracing]\nphases = "sometimes"\n[serve]\nport = 99999\n'
    )
    outcome = cli("config", "show")
    assert outcome.code == 0
    assert "[targets.spare]" in outcome.out
    told = [line for line in outcome.err.splitlines() if line.startswith("warning:")]
    said = ("cerebrass", "no target prd; did you mean prod", "tracing.phases", "serve.port")
    assert [any(word in line for line in told) for word in said] == [True] * 4
    assert KEY not in outcome.out + outcome.err
    assert cli("config", "check").code == 2


def test_config_check_reports_misspelt_variables(
    cli: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", "k")
    monkeypatch.setenv("SPECCLIENT_TARGETS__PROD__MODLE", "x")
    monkeypatch.setenv("SPECCLIENT_OWN", "x")
    outcome = cli("config", "check")
    assert outcome.code == 2
    assert "did you mean SPECCLIENT_TARGETS__PROD__MODEL?" in outcome.out
    assert "SPECCLIENT_OWN is not read by specclient" in outcome.err
    monkeypatch.delenv("SPECCLIENT_TARGETS__PROD__MODLE")
    assert cli("config", "check").code == 0, "an unlike name may be the application's own"


def test_models_are_listed_with_their_place(cli: Any) -> None:
    rows = json.loads(cli("models", "list", "--json").out)
    assert {row["path"] for row in rows} == {None}  # the tests' cache is empty
    assert all(len(row["sha256"]) == 64 for row in rows)
    assert cli("models", "path", "smollm2").code == 1
    assert cli("models", "path", "nope").code == 2
    fetched = cli("models", "fetch", "nope")
    assert (fetched.code, "smollm2" in fetched.err, "GGUF" in fetched.err) == (2, True, False)


@pytest.mark.parametrize("width", ["80", "100"])
def test_paths_and_names_can_be_copied_whole(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: str
) -> None:
    from specclient_engine import models

    long = "accounts/some-team/models/" + "a-model-with-a-long-name-" * 5
    folder = tmp_path / ("folder-" * 20)
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr(models, "cached", lambda _row: folder)
    (tmp_path / "specclient.toml").write_text(f'[targets.p]\nprovider = "groq"\nmodel = "{long}"\n')
    assert str(folder) in cli("models", "list").out
    lines = cli("config", "show").out.splitlines()
    assert [line.split() for line in lines[-2:]] == [["provider", "groq", "file"], ["model", long, "file"]]
    assert sum(str(tmp_path) in line for line in lines) == 1, "the file is named once"
    assert lines == [line.rstrip() for line in lines]


def test_a_cached_model_is_found_and_removed(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from specclient_engine import models

    folder = tmp_path / "converted"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x" * 1000)
    download = models.cache_root() / "downloads" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    download.parent.mkdir(parents=True)
    download.write_bytes(b"y" * 500)
    monkeypatch.setattr(models, "cached", lambda _row: folder if folder.exists() else None)
    assert cli("models", "path", "smollm2").out.strip() == str(folder)
    assert json.loads(cli("models", "remove", "smollm2", "--json").out)["freed_bytes"] == 1500
    assert not folder.exists()
    assert not download.exists()
    assert cli("models", "remove", "smollm2").code == 0
