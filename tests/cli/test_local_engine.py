"""The command line on the embedded engine: figures from the engine, and its refusals in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specclient_engine import errors
from specclient_engine.models import KNOWN_MODELS

pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.mark.model
def test_the_engine_tells_what_the_prediction_bought(cli: Any, smollm2_path: Path) -> None:
    known = "one two three four five six seven eight nine ten"
    outcome = cli(
        "chat", f"Repeat exactly: {known}", "--prediction", known, "-p", "local", "-m", smollm2_path,
        "--max-tokens", 24, "--temperature", 0, "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)["specclient"]
    assert report["prediction"]["outcome"] == "local"
    assert report["prediction"]["accepted_tokens"] is not None
    assert report["usage"]["completion"] <= 24
    assert report["speculation"]["forward_passes"] <= 24
    assert {report["timing"][name]["source"] for name in ("prefill", "decode")} == {"engine"}


@pytest.mark.model
def test_a_file_longer_than_the_context_is_one_sentence(cli: Any, smollm2_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("".join(f"line {number} of many\n" for number in range(4000)))
    before = path.read_bytes()
    outcome = cli("edit", path, "-i", "x", "--write", "-p", "local", "-m", smollm2_path)
    assert outcome.code == 2
    (sentence,) = [line for line in outcome.err.splitlines() if line.startswith("error:")]
    assert "too long for the model" in sentence
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ModelNotFound("no source has it"), 2),
        (errors.ModelCorrupt("the SHA-256 of x.gguf is not the publisher's: delete it and try again"), 1),
        (errors.NotEnoughDisk("/cache has 10 MB free and 500 MB are needed"), 1),
        (errors.NotEnoughMemory("the weights need 9 GB and 4 GB are free"), 1),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: errors.EngineError, code: int
) -> None:
    from specclient_engine import Engine

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Engine, "load", fail)
    (tmp_path / "a.py").write_text("x = 1\n")
    outcome = cli("edit", "a.py", "-i", "x", "-p", "local", "-m", KNOWN_MODELS[0].name)
    assert outcome.code == code
    assert outcome.err == f"error: {error}\n"
    assert outcome.out == ""


def test_a_temperature_that_the_engine_refuses_is_told_before_it_is_loaded(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specclient.cli.clients.load_engine", lambda _: pytest.fail("the engine was loaded"))
    outcome = cli("chat", "hi", "-p", "local", "--temperature", "3")
    assert (outcome.code, outcome.err) == (2, "error: --temperature is a number from 0 to 2, not 3.\n")


def test_with_nothing_configured_the_engine_answers(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specclient_engine import Engine

    asked: list[str] = []

    def note(model: str, **_: object) -> None:
        asked.append(model)
        raise errors.ModelNotFound("stop here")

    monkeypatch.setattr(Engine, "load", note)
    (tmp_path / "a.py").write_text("x = 1\n")
    outcome = cli("edit", "a.py", "-i", "x")
    assert "using the embedded engine" in outcome.err
    assert asked == ["qwen2.5-coder-0.5b"]
