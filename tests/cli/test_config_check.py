"""`config check` tells every fault in one run, and each of them once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from specclient import Client
from specclient.config import load_config
from specclient.errors import ConfigError

SEVEN = """
default = "prd"
[targets.prod]
provider = "opnai"
base_url = "example.com/v1"
fallback = ["spare", "sparr", "other"]
on_unsupported = "sometimes"
max_retries = -1
[targets.spare]
provider = "cerebras"
model = "gpt-oss-120b"
overrides = { predicton = true }
[tracing]
phases = "sometimes"
telemetry = "of"
[serve]
port = 99999
max_requests = 0
"""


def test_all_faults_are_told_in_one_run(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "specclient.toml").write_text(SEVEN)
    outcome = cli("config", "check")
    assert outcome.code == 2
    said = (
        "default: ", "no target prd; did you mean prod (default target)?",
        "No provider is called 'opnai'. Did you mean openai?", "base_url 'example.com/v1'",
        "no target sparr; did you mean spare (targets.prod.fallback)?", "no target other",
        "targets.prod.on_unsupported: input should be", "targets.prod.max_retries: input should be",
        "did you mean 'prediction'", "No API key",
        "tracing.phases", "tracing.telemetry", "serve.port", "serve.max_requests",
    )  # fmt: skip
    assert {text: outcome.out.count(text) for text in said} == dict.fromkeys(said, 1)
    assert "?." not in outcome.out
    assert "Input should" not in outcome.out, "what follows a colon begins small"
    assert "on_unsupported: on_unsupported" not in outcome.out
    problems = json.loads(cli("config", "check", "--json").out)["problems"]
    assert sorted(problems) == ["default", "prod", "serve", "spare", "tracing"]


def test_a_fallback_is_told_at_its_place_and_another_targets_fault_once(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "specclient.toml"
    head = '[targets.prod]\nprovider = "ollama"\nmodel = "m"\n'
    file.write_text(f'{head}fallback = ["nope"]\n')
    out = cli("config", "check").out
    told = "there is no target nope; known are prod, local (targets.prod.fallback)."
    assert f"{told}\n" in out
    with pytest.raises(ConfigError, match=re.escape(told)):
        Client(config=load_config(file))
    file.write_text(f'{head}fallback = ["local"]\n[targets.local]\nprovider = "local"\ndtype = "float3"\n')
    outcome = cli("config", "check")
    assert (outcome.code, outcome.out.count("dtype")) == (2, 1)
    assert "prod: ok\n" in outcome.out


def test_unknown_keys_are_told_at_once_and_hide_nothing(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "specclient.toml"
    file.write_text(
        'defualt = "p"\n[targets.p]\nprovider = "groq"\nmodle = "y"\nmax_retries = -1\n'
        '[targets.q]\nprovidor = "x"\n'
    )
    said = (
        "defualt; did you mean default?",
        "targets.p.modle; did you mean model?",
        "targets.q.providor; did you",
    )
    outcome = cli("config", "check")
    assert outcome.code == 2
    assert {text: outcome.out.count(text) for text in said} == dict.fromkeys(said, 1)
    assert "p: " in outcome.out
    assert "targets.p.max_retries: input should be" in outcome.out
    stopped = cli("config", "show")
    assert (stopped.code, stopped.err.count("there is no key")) == (2, 3)


def test_a_misspelt_variable_is_told_once(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCLIENT_MODLE", "x")
    outcome = cli("config", "check")
    assert (outcome.out + outcome.err).count("did you mean SPECCLIENT_MODEL?") == 1
    assert "did you mean SPECCLIENT_MODEL?" in cli("config", "show").err


def test_a_name_from_the_command_line_is_told_without_a_place(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    outcome = cli("edit", "a.txt", "-i", "x", "-p", "opnai", "-m", "m")
    assert outcome.code == 2
    assert outcome.err.startswith("error: No provider is called 'opnai'. Did you mean openai? ")
