"""`config check` and `config show` look at the variables of the default target too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILE = 'default = "a"\n[targets.a]\nprovider = "local"\n[targets.b]\nprovider = "local"\n'


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "specclient.toml"
    path.write_text(FILE)
    return path


def test_every_wrong_value_is_told_with_its_variable(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"TIMEOUT": "soon", "PROVIDER": "opnai", "DTYPE": "int4", "MAX_RETRIES": "-1", "MODEL": "fine"}
    for name, value in wrong.items():
        monkeypatch.setenv(f"SPECCLIENT_{name}", value)
    outcome = cli("config", "check", "--json")
    assert outcome.code == 2
    problems = json.loads(outcome.out)["problems"]
    assert sorted(problems) == [
        f"SPECCLIENT_{name}" for name in ("DTYPE", "MAX_RETRIES", "PROVIDER", "TIMEOUT")
    ]
    assert all(str(said).count(name) == 1 for name, said in problems.items()), problems


def test_values_that_can_be_used_are_no_problem(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROVIDER": "openai", "MODEL": "m", "API_KEY": "k", "TIMEOUT": "3"}.items():
        monkeypatch.setenv(f"SPECCLIENT_{name}", value)
    assert cli("config", "check").code == 0


def test_a_named_target_is_shown_whatever_is_wrong_elsewhere(
    cli: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(FILE + "timeout = 'soon'\n")
    monkeypatch.setenv("SPECCLIENT_TIMEOUT", "soon")
    assert cli("config", "show").code == 2
    told = json.loads(cli("config", "show", "-t", "a", "--json").out)
    assert (told["default"], list(told["targets"])) == ("a", ["a"])
