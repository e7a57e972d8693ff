"""`plan` needs no model and no network; `probe` needs a server and sends no prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specclient.cli.reference import page
from tests.server import Answer, Request, ScriptedServer, error, reply

NUMBERS = "parameters=7.6e9,layers=28,kv_heads=4,head_dim=128"


def test_plan_reckons_gain_and_memory(cli: Any) -> None:
    value = json.loads(
        cli("plan", "--target-model", NUMBERS, "-a", "0.9", "-g", "4", "--memory", "24GB", "--json").out
    )
    assert value["best"]["gamma"] == 4
    assert value["best"]["gain"] == pytest.approx((1 - 0.9**5) / 0.1)
    assert value["memory"]["target_bytes"] == 15_200_000_000
    assert value["memory"]["fits"] is True
    assert value["cost_source"].startswith("drafts from text")


def test_plan_says_where_the_cost_of_a_draft_model_comes_from(cli: Any) -> None:
    draft = "parameters=0.76e9,layers=10,kv_heads=2,head_dim=64"
    arguments = ("plan", "--target-model", NUMBERS, "--draft-model", draft)
    assert "0.1 passes (estimated" in cli(*arguments).out
    assert "0.3 passes (given)" in cli(*arguments, "-c", "0.3").out
    assert "No draft length gains" in cli(*arguments, "-c", "2").out


@pytest.mark.parametrize(
    "options",
    [
        ("--memory", "much"),
        ("--memory", "24"),  # of what?
        ("--memory", "1.2.3GB"),
        ("--dtype", "int3"),
        ("--measure",),
        ("--acceptance", "2"),
        ("--acceptance", "nan"),
        ("--cost-ratio", "inf"),
        ("--gamma", "1000000000"),
    ],
)
def test_plan_refuses_nonsense(cli: Any, options: tuple[str, ...]) -> None:
    assert cli("plan", "--target-model", NUMBERS, *options).code == 2


@pytest.mark.parametrize(
    ("acceptance", "gamma", "tokens", "gain"), [("0", "7", 1, 1), ("1", "7", 8, 8), ("1", "0", 1, 1)]
)
def test_plan_at_the_ends_of_its_range(
    cli: Any, acceptance: str, gamma: str, tokens: float, gain: float
) -> None:
    value = json.loads(cli("plan", "--target-model", NUMBERS, "-a", acceptance, "-g", gamma, "--json").out)
    assert (value["best"]["tokens_per_pass"], value["best"]["gain"]) == (tokens, gain)


def test_plan_tells_what_does_not_fit(cli: Any) -> None:
    huge = "parameters=1e15,layers=900,kv_heads=64,head_dim=128"
    outcome = cli("plan", "--target-model", huge, "--memory", "24GB", "--context", "1000000")
    assert "does not fit into 24.00 GB: the weights alone take 2,000,000.00 GB" in outcome.out
    assert outcome.code == 1
    assert "draft" not in outcome.out.splitlines()[-2], "without a draft model none takes memory"
    outcome = cli("plan", "--target-model", NUMBERS, "--memory", "15.3GB", "--context", "100000")
    assert "does not fit into 15.30 GB: at most 1,743 tokens each, or 0 requests" in outcome.out
    assert outcome.code == 1
    assert cli("plan", "--target-model", huge).code == 0, "nobody said that it has to fit"


def test_plan_says_that_the_cost_of_a_pass_was_not_measured(cli: Any) -> None:
    assert "cost of the pass: not measured" in cli("plan", "--target-model", NUMBERS).out
    value = json.loads(cli("plan", "--target-model", NUMBERS, "--json").out)
    assert value["verify_cost_source"] == "assumed"


def test_probe_names_the_server_and_sends_no_prompt(cli: Any, server: ScriptedServer) -> None:
    def vllm(request: Request) -> Answer:
        if request.path == "/version":
            return reply({"version": "0.17.0"})
        if request.path == "/v1/models":
            return reply({"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 4096}]})
        return reply({"detail": "Not Found"}, 404)

    server.respond = vllm
    value = json.loads(cli("probe", f"{server.url}/chat/completions", "--json").out)
    assert value["provider"] == "vllm"
    assert value["models"] == ["qwen"]
    assert {request.method for request in server.requests} == {"GET"}
    assert "0.17.0" in cli("probe", server.url).out


def test_probe_of_a_silent_proxy_is_unknown_and_of_nothing_exits_1(cli: Any, server: ScriptedServer) -> None:
    server.respond = lambda _request: reply(b"<html>hello</html>", 403)
    assert json.loads(cli("probe", server.url, "--json").out)["server"] == "unknown"
    outcome = cli("probe", "http://127.0.0.1:1")
    assert outcome.code == 1
    assert "nothing answers" in outcome.err
    assert "is the server started" in outcome.err
    said = json.loads(cli("probe", "http://127.0.0.1:1", "--json").out)["error"]["message"]
    assert said in outcome.err
    assert "hunter2" not in cli("probe", "http://me:hunter2@127.0.0.1:1").err
    assert cli("probe", "ftp://x").code == 2


def test_the_reference_is_what_the_commands_say() -> None:
    kept = Path(__file__).parents[2] / "docs" / "cli.md"
    assert kept.read_text() == page(), "write it anew: python -m specclient.cli.reference > docs/cli.md"


def test_probe_says_that_a_key_is_asked_for(
    cli: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.respond = lambda _: error(401, "who are you?")
    assert "give its key, by --api-key-env NAME" in cli("probe", server.url).err
    assert json.loads(cli("probe", server.url, "--json").out)["refused"] == 401
    monkeypatch.setenv("PROBE_KEY", "sk-wrong")
    outcome = cli("probe", server.url, "--api-key-env", "PROBE_KEY")
    assert "answers 401" in outcome.err
    assert "give another key" in outcome.err
    assert "sk-wrong" not in outcome.err + outcome.out


@pytest.mark.parametrize(
    "address", ["http://[::1", "[::1/v1", "http://a b", "http://exämple.invalid", "h:99999"]
)
def test_probe_refuses_what_is_no_address(cli: Any, address: str) -> None:
    outcome = cli("probe", address)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith("error: The address to probe ")


@pytest.mark.parametrize("command", [("chat", "hi"), ("explain",)])
def test_an_address_that_cannot_be_read_is_one_sentence(cli: Any, command: tuple[str, ...]) -> None:
    outcome = cli(*command, "--base-url", "http://[::1/v1", "-m", "m")
    assert outcome.code == 2
    assert outcome.err.startswith("error: argument: base_url: is no address: its host cannot be read")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("probe", "http://127.0.0.1:1", "--timeout", "inf"), "--timeout"),
        (("plan", "--target-model", "~nobody-is-called-this/x"), "There is no home directory"),
        (("bench", "--clients", "99999999999999999999"), "--clients takes numbers from 1 to 10,000"),
        (("bench", "--out", "folder"), "folder is a folder: name a file in it."),
        (("bench", "--html", "folder"), "folder is a folder: name a file in it."),
        (("config", "check", "--config", "latin.toml"), "latin.toml is not UTF-8 text (byte 2)"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_at_once(
    cli: Any, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert said in outcome.err
