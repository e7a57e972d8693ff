"""A cache that cannot be written to, or has no place, is one sentence that names it and SPECCLIENT_CACHE."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specclient import Client, ConfigError
from specclient.core import engines
from specclient_engine.models import KNOWN_MODELS

KNOWN = KNOWN_MODELS[0].name
COMMANDS = (
    ("chat", "hi", "-p", "local", "-m", KNOWN, "--json"),
    ("chat", "hi", "-p", "local", "-m", "model.gguf", "--json"),
    ("models", "fetch", KNOWN, "--json"),
    ("models", "fetch", "./model.gguf", "--json"),
)


@pytest.fixture
def below_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "cache"
    monkeypatch.setenv("SPECCLIENT_CACHE", str(cache))
    return cache


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that only its owner may enter, who is somebody else."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("SPECCLIENT_CACHE", str(cache))

    def refusing(name: str) -> Callable[..., Any]:
        real = getattr(Path, name)

        def method(self: Path, *arguments: Any, **settings: Any) -> Any:
            if self.is_relative_to(cache):
                raise PermissionError(13, "Permission denied", str(self))
            return real(self, *arguments, **settings)

        return method

    for name in ("mkdir", "stat", "open", "unlink"):
        monkeypatch.setattr(Path, name, refusing(name))
    return cache


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("SPECCLIENT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)


def told(outcome: Any) -> str:
    """The one sentence, which stdout has as JSON too."""
    assert outcome.code == 2
    (said,) = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in outcome.err
    message: str = json.loads(outcome.out)["error"]["message"]
    assert said == f"error: {message}"
    assert "SPECCLIENT_CACHE" in message
    return message


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ["below_a_file", "refused"])
def test_it_is_named(
    cli: Any, tmp_path: Path, arguments: tuple[str, ...], kind: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    cache = request.getfixturevalue(kind)
    assert str(cache) in told(cli(*arguments))


@pytest.mark.parametrize("command", ["list", "path", "remove"])
def test_what_only_looks_into_it_says_so_too(cli: Any, refused: Path, command: str) -> None:
    name = () if command == "list" else (KNOWN,)
    assert str(refused) in told(cli("models", command, *name, "--json"))


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_without_a_home_there_is_no_place_for_it(
    cli: Any, tmp_path: Path, homeless: None, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert "SPECCLIENT_CACHE" in told(cli(*arguments))


def test_the_library_raises_an_error_of_its_own(below_a_file: Path) -> None:
    with Client(provider="local", model=KNOWN) as client, pytest.raises(ConfigError) as raised:
        client.chat.completions.create(messages=[{"role": "user", "content": "x"}])
    assert str(below_a_file) in str(raised.value)
    assert "SPECCLIENT_CACHE" in str(raised.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "(torch is missing)"),
        (ImportError("libtorch.so: cannot open shared object file"), "(libtorch.so: cannot open shared"),
        (ImportError(), "(one cannot be imported)"),
    ],
)
def test_a_library_that_cannot_be_imported_is_told_as_what_it_is(
    monkeypatch: pytest.MonkeyPatch, error: ImportError, said: str
) -> None:
    from specclient_engine import Engine

    def load(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Engine, "load", load)
    with pytest.raises(ConfigError) as raised:
        engines.shared("some-model", {})
    assert said in str(raised.value)
    assert "None" not in str(raised.value)
