"""Mistakes in a configuration: told before anything is sent, with their place, and never a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specclient
from specclient import Client, ConfigError
from specclient.cli.config_check import of_target
from specclient.config import api_key, load_config, resolve_target

PROD = '[targets.prod]\nprovider = "openai"\nmodel = "m"\napi_key = "k"\n'
KEYLESS = '[targets.prod]\nprovider = "openai"\nmodel = "m"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profile = 5", "profile is the name of a profile, not int."),
        ('profile = ["ci"]', "profile is the name of a profile, not list."),
        ("profiles = 3", "profiles is a table of tables: write [profiles.NAME]."),
        ('profiles = "abc"', "profiles is a table of tables: write [profiles.NAME]."),
        ("[profiles]\na = 3", "profiles.a is a table: write [profiles.a]."),
        ('profile = "a"\n[profiles]\na = [1]', "profiles.a is a table: write [profiles.a]."),
        ('default = ""', "default is empty; leave it out instead."),
        (f"x = {'[' * 3000}{']' * 3000}", "is not valid TOML: its tables and lists are nested too deeply."),
        (f"x = {'1' * 5000}", "is not valid TOML: "),
    ],
)
def test_what_cannot_be_read_is_one_sentence(here: Path, text: str, said: str) -> None:
    (here / "specclient.toml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        load_config(env={})
    assert str(here / "specclient.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tool = 3", "tool is a table: write [tool]."),
        ("tool.specclient = 3", "tool.specclient is a table: write [tool.specclient]."),
        ('[tool]\nspecclient = "x"', "tool.specclient is a table: write [tool.specclient]."),
        ('[tool]\nspecclient = ""', "tool.specclient is a table: write [tool.specclient]."),
        ("[[tool.specclient]]\nx = 1", "tool.specclient is a table: write [tool.specclient]."),
    ],
)
def test_a_project_file_whose_part_of_ours_is_no_table(here: Path, text: str, said: str) -> None:
    path = here / "pyproject.toml"
    path.write_text(text)
    for named in (path, None):
        if named or "specclient" in text:  # a file that does not name us is not looked into
            with pytest.raises(ConfigError, match=re.escape(f"{path}: {said}")):
                load_config(named, env={})


@pytest.mark.parametrize(
    "text",
    [
        "[ tool . specclient ]\ndefault = 'local'",
        "[tool.'specclient']\ndefault = 'local'",
        "[tool]\nspecclient.default = 'local'",
        "tool = {specclient = {default = 'local'}}",
    ],
)
def test_our_part_of_a_project_file_is_found_however_it_is_spelled(here: Path, text: str) -> None:
    (here / "pyproject.toml").write_text(text)
    assert load_config(env={}).default == "local"


@pytest.mark.parametrize(
    "text", ['dependencies = ["specclient"]', "specclient = {broken", "[tool.specclient]"]
)
def test_a_project_file_that_only_names_us_is_none_of_ours(here: Path, text: str) -> None:
    (here / "pyproject.toml").write_text(text)
    assert load_config(env={}).path is None


def refusing(monkeypatch: pytest.MonkeyPatch, name: str, place: Path) -> None:
    """As for a user who may not look: the one who runs the tests may look everywhere."""
    real: Callable[..., Any] = getattr(Path, name)

    def method(self: Path, *arguments: Any, **settings: Any) -> Any:
        if self == place:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *arguments, **settings)

    monkeypatch.setattr(Path, name, method)


def test_a_project_file_that_may_not_be_read_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = here / "pyproject.toml"
    path.write_text("[tool.specclient]\n")
    refusing(monkeypatch, "open", path)
    with pytest.raises(ConfigError, match=re.escape(f"{path} cannot be read: Permission denied.")):
        load_config(env={})


def test_a_folder_that_may_not_be_searched_has_no_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = here / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    (here / "specclient.toml").write_text(PROD)
    refusing(monkeypatch, "stat", here / "specclient.toml")
    refusing(monkeypatch, "stat", here / "pyproject.toml")
    assert load_config(env={}).path is None


def test_a_working_directory_that_is_gone_has_no_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = here / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    inner.rmdir()
    assert load_config(env={}).path is None
    assert specclient.plan({"messages": []}, provider="openai", model="m").outcome == "none"
    Client(provider="openai", model="m", api_key="k").close()
    with pytest.raises(ConfigError, match="SPECCLIENT_CONFIG names no file that can be read"):
        load_config(env={"SPECCLIENT_CONFIG": "specclient.toml"})
    with pytest.raises(ConfigError, match="api_key_file of target 'openai' cannot be read"):
        Client(provider="openai", model="m", api_key_file="key")
    monkeypatch.chdir(here)


@pytest.mark.parametrize("place", ["a\0b", "~nobody-is-called-this/x", f"{'x' * 5000}", "file/below"])
def test_a_file_that_cannot_be_is_told_by_whoever_names_it(here: Path, place: str) -> None:
    (here / "file").write_text("")
    for named in ({"path": place}, {"env": {"SPECCLIENT_CONFIG": place}}):
        with pytest.raises(ConfigError, match=r"argument|SPECCLIENT_CONFIG"):
            load_config(**{"env": {}, **named})  # type: ignore[arg-type]
    target = resolve_target(provider="openai", api_key_file=place)
    with pytest.raises(ConfigError, match="api_key_file of target 'openai' cannot be read"):
        api_key(target, {}, directory=here)


# What `config check` used to call ok


def test_files_without_certificates_are_told_together(here: Path) -> None:
    (here / "notes.pem").write_text("nothing")
    path = here / "specclient.toml"
    path.write_text(f'{PROD}verify = "notes.pem"\nclient_cert = "notes.pem"')
    said = of_target(load_config(env={}), "prod")
    assert [text.partition(" 'notes.pem'")[0] for text in said] == [
        f"{path}: targets.prod.verify: verify",
        f"{path}: targets.prod.client_cert: client_cert",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('headers = {x-a = "a\\nb"}', "targets.prod.headers: the value of x-a holds a line break"),
        ('headers = {x-a = "€"}', "targets.prod.headers: the value of x-a holds a character that no header"),
        ('organization = "a\\nb"', "targets.prod.organization: holds a line break"),
        ('base_url = "http://a b/v1"', "targets.prod.base_url: holds a blank"),
        ('base_url = "http://[::1/v1"', "targets.prod.base_url: is no address"),
        ('base_url = "http://exämple.invalid/v1"', "looked up, xn--exmple-cua.invalid"),
        ('base_url = "http://example.invalid/ä"', "targets.prod.base_url: holds characters that no address"),
        ('client_cert = "gone.pem"', "client_cert of target 'prod' is a PEM file"),
        ('proxy = "http://exämple:3128"', "targets.prod.proxy: a proxy's address is a host"),
        ('overrides = {auth_prefix = "€"}', "what is sent as the key of target 'prod' holds a character"),
    ],
)
def test_what_cannot_be_sent_is_told_with_its_place(here: Path, text: str, said: str) -> None:
    path = here / "specclient.toml"
    path.write_text(PROD + text)
    (told,) = of_target(load_config(env={}), "prod")
    assert said in told
    assert str(path) in told or text.startswith("overrides")
    with pytest.raises(ConfigError, match=re.escape(said)):
        Client("prod", config=path)


@pytest.mark.parametrize("key", ["sk-€-secret", "sk-a\nsk-secret"])
def test_a_key_that_cannot_be_sent_is_told_with_its_source_and_not_shown(
    here: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    (here / "key.txt").write_text(key)
    monkeypatch.setenv("NAMED", key)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-good")
    sources = {
        f'api_key = "{key}"'.replace("\n", "\\n"): "targets.prod.api_key: holds a",
        'api_key_env = "NAMED"': "The environment variable NAMED of target 'prod' holds a",
        'api_key_file = "key.txt"': "The api_key_file of target 'prod'",
        'api_key_command = ["cat", "key.txt"]': "What the api_key_command of target 'prod' (cat) printed",
        "": "The environment variable OPENAI_API_KEY of target 'prod' holds a",
    }
    for text, said in sources.items():
        if not text:
            monkeypatch.setenv("OPENAI_API_KEY", key)
        (here / "specclient.toml").write_text(KEYLESS + text)
        (told,) = of_target(load_config(), "prod")
        assert said in told
        assert "secret" not in told
        with pytest.raises(ConfigError, match=re.escape(said)):
            Client("prod")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('"pass \'x"', "targets.prod.api_key_command: has a quote that is never closed"),
        ('"a\\u0000b"', "targets.prod.api_key_command: holds a NUL character"),
        ('""', "targets.prod.api_key_command: is empty; leave it out instead"),
        ('" "', "targets.prod.api_key_command: is empty; leave it out instead"),
        ("[]", "targets.prod.api_key_command: is empty; leave it out instead"),
    ],
)
def test_a_command_that_is_none(here: Path, command: str, said: str) -> None:
    (here / "specclient.toml").write_text(f"{KEYLESS}api_key_command = {command}\n")
    for use in (lambda: resolve_target("prod", config=load_config(env={})).shown(), lambda: Client("prod")):
        with pytest.raises(ConfigError, match=re.escape(said)):
            use()


def test_a_target_made_by_hand_is_asked_for_its_key_safely() -> None:
    for command in ("pass 'x", "a\0b", " "):
        target = specclient.Target(name="t", provider="openai", api_key_command=command)
        assert target.shown()["api_key_command"][0].endswith(" …")
        with pytest.raises(ConfigError, match="api_key_command of target 't'"):
            api_key(target, {})
    empty = specclient.Target(name="t", provider="openai", api_key_command="")
    assert empty.shown()["api_key_command"][0] == ""


def test_an_address_that_cannot_be_read_is_shown_without_its_password() -> None:
    target = specclient.Target(name="t", provider="openai", base_url="http://u:secret@[::1/v1")
    assert "secret" not in target.shown()["base_url"][0]


def test_blank_names_are_seen(here: Path) -> None:
    (here / "specclient.toml").write_text(f'{PROD}fallback = [""]\n')
    with pytest.raises(ConfigError, match=re.escape("there is no target ''; known are prod, local")):
        Client("prod")
    with pytest.raises(ConfigError, match=r"there is no target ''.*argument target"):
        Client("")


def test_a_model_in_an_address_is_written_as_addresses_are(here: Path) -> None:
    request = {"messages": [{"role": "user", "content": "x"}]}
    place = {"provider": "azure", "base_url": "https://h.invalid", "api_version": "2024-10-21"}
    plan = specclient.plan(request, model="mein modéll", **place)
    assert plan.facts.url is not None
    assert "/deployments/mein%20mod%C3%A9ll/" in plan.facts.url
    assert plan.facts.url.isascii()


def test_a_deep_table_in_a_variable_is_no_table() -> None:
    env = {"SPECCLIENT_PROVIDER": "openai", "SPECCLIENT_HEADERS": "[" * 100_000}
    with pytest.raises(ConfigError, match="SPECCLIENT_HEADERS: a JSON object is expected"):
        resolve_target(config=load_config(env=env))
