"""Which models a client may have: a target's own, those that are known by name, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specclient.config import load_config
from specclient.errors import ConfigError
from specclient.gateway.targets import Targets, Unknown
from specclient.tracing import DEFAULT_OPTIONS
from tests import server as scripted
from tests.gateway.conftest import Running
from tests.server import ScriptedServer


def refusal(gateway: Running, model: str) -> Any:
    answer = gateway.post(model=model)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    return answer.json()["error"]["message"]


@pytest.fixture
def local(start: Callable[..., Running], tmp_path: Path) -> Callable[..., Running]:
    """A server of the embedded engine alone, as without any configuration."""
    (tmp_path / "empty.toml").write_text("")
    config = load_config(tmp_path / "empty.toml", env={})
    return lambda **arguments: start(config=config, **arguments)


def test_other_models_of_a_server_are_asked_for_there(
    start: Callable[..., Running], upstream: ScriptedServer
) -> None:
    upstream.play(scripted.reply(scripted.completion()))
    assert start().post(model="plain/other").status_code == 200
    assert upstream.requests[0].json["model"] == "other"


def test_models_bound_what_clients_may_have(start: Callable[..., Running], upstream: ScriptedServer) -> None:
    upstream.respond = lambda _: scripted.reply(scripted.completion())
    allowing = start(models=("plain/oth*",))
    assert allowing.post(model="plain/other").status_code == 200
    assert allowing.post(model="predicting").status_code == 200
    assert "serve.models" in refusal(allowing, "plain/more")
    refusal(allowing, "predicting/other")
    assert len(upstream.requests) == 2


def test_an_allowed_model_names_its_target(local: Callable[..., Running]) -> None:
    with pytest.raises(ConfigError, match=r"serve\.models\.0: "):
        local(models=("other",))


def test_no_answer_tells_what_this_machine_has(local: Callable[..., Running], tmp_path: Path) -> None:
    there = tmp_path / "model.gguf"
    there.write_bytes(b"GGUF")
    gateway = local()
    said = {
        refusal(gateway, f"local/{name}")
        for name in (there, tmp_path, tmp_path / "missing", "/etc/passwd", "some-org/some-model", "..", "")
    }
    assert said == {
        "Target 'local' does not serve that model: ask for local, or have it allowed by serve.models."
    }


def test_why_an_allowed_model_cannot_be_loaded_is_told_to_the_operator(
    local: Callable[..., Running], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("torch", reason="torch is not installed (specclient[local])")
    (tmp_path / "there").write_bytes(b"no model")
    gateway = local(models=("local/*",))
    answers = [gateway.post(model=f"local/{tmp_path / name}") for name in ("there", "missing")]
    assert {answer.status_code for answer in answers} == {400}
    assert answers[0].json() == answers[1].json()
    assert str(tmp_path) not in answers[0].text
    assert str(tmp_path / "there") in caplog.text


def test_names_that_the_engine_knows_are_served(tmp_path: Path) -> None:
    pytest.importorskip("specclient_engine.models", reason="the engine is not installed")
    (tmp_path / "empty.toml").write_text("")
    targets = Targets(load_config(tmp_path / "empty.toml", env={}), None, DEFAULT_OPTIONS)
    assert targets.choose("local/smollm2").model == "smollm2"
    with pytest.raises(Unknown):
        targets.choose("local/smollm2/..")
