"""Layers with origins, errors that name the file and the key, keys from everywhere, shown nowhere."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specclient import Client
from specclient.config import ConfigWarning, Target, Timeout, api_key, load_config, resolve_target
from specclient.errors import ConfigError

FILE = """
default = "prod"
[targets.prod]
provider = "fireworks"
model = "file-model"
api_key_env = "FW_KEY"
fallback = ["local"]
timeout = 30
headers = {x-team = "a"}
[targets.local]
provider = "local"
dtype = "float32"
[profiles.ci]
default = "local"
[profiles.ci.targets.prod]
model = "ci-model"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


Write = Callable[[str], Path]


@pytest.fixture
def write(here: Path) -> Write:
    def to(text: str, name: str = "specclient.toml") -> Path:
        path = here / name
        path.write_text(text)
        return path

    return to


def resolved(target: str | None = None, env: dict[str, str] | None = None, **values: Any) -> Target:
    return resolve_target(target, config=load_config(env=env or {}), **values)


def test_the_layers_and_their_origins(write: Write) -> None:
    path = write(FILE)
    env = {"SPECCLIENT_MODEL": "env-model", "SPECCLIENT_MAX_RETRIES": "5"}
    target = resolved(env=env, timeout=7)
    assert (target.name, target.provider, target.model) == ("prod", "fireworks", "env-model")
    assert (target.max_retries, target.timeout.content_idle, target.fallback) == (5, 7, ("local",))
    assert target.origins["model"] == "SPECCLIENT_MODEL"
    assert target.origins["timeout"] == "argument"
    assert target.origins["provider"] == f"{path}: targets.prod.provider"
    assert "dtype" not in target.origins
    assert resolved().model == "file-model"
    assert resolved(env=env, model="mine").model == "mine"


def test_a_named_target_does_not_take_the_defaults_variables(write: Write) -> None:
    write(FILE)
    env = {
        "SPECCLIENT_MODEL": "x",
        "SPECCLIENT_PROVIDER": "openai",
        "SPECCLIENT_TARGETS__LOCAL__DTYPE": "int8",
    }
    target = resolved("local", env)
    assert (target.provider, target.model, target.dtype) == ("local", None, "int8")
    assert target.origins["dtype"] == "SPECCLIENT_TARGETS__LOCAL__DTYPE"


def test_a_target_of_variables_alone(here: Path) -> None:
    env = {
        "SPECCLIENT_TARGETS__BOX__PROVIDER": "vllm",
        "SPECCLIENT_TARGETS__BOX__BASE_URL": "http://box:8000",
        "SPECCLIENT_TARGET": "box",
    }
    assert resolved(env=env).base_url == "http://box:8000"
    assert resolved(env={"SPECCLIENT_PROVIDER": "local"}).provider == "local"


def test_profiles(write: Write) -> None:
    path = write(FILE)
    assert load_config(env={}, profile="ci").default == "local"
    config = load_config(env={"SPECCLIENT_PROFILE": "ci"})
    target = resolve_target("prod", config=config)
    assert (target.model, target.provider) == ("ci-model", "fireworks")
    assert target.origins["model"] == f"{path}, profile ci: targets.prod.model"
    with pytest.raises(ConfigError, match="no profile cl; known are ci"):
        load_config(env={}, profile="cl")


def test_the_file_is_found_upward(write: Write, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(FILE)
    (here / "a" / "b").mkdir(parents=True)
    (here / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    monkeypatch.chdir(here / "a" / "b")
    assert load_config(env={}).path == path
    (here / "a" / "pyproject.toml").write_text('[tool.specclient.targets.t]\nprovider = "local"\n')
    config = load_config(env={})
    assert config.path == here / "a" / "pyproject.toml"
    assert config.default == "t", "a single target needs no default"


def test_a_file_by_name(write: Write, here: Path) -> None:
    other = write(FILE, "other.toml")
    assert load_config(other, env={}).path == other
    assert load_config(env={"SPECCLIENT_CONFIG": str(other)}).path == other
    assert load_config(env={}).path is None
    with pytest.raises(ConfigError, match=r"missing\.toml, which SPECCLIENT_CONFIG names"):
        load_config(env={"SPECCLIENT_CONFIG": str(here / "missing.toml")})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defualt = 'x'", "there is no key defualt; did you mean default?"),
        ("[targets.p]\nprovidor = 'x'", "no key targets.p.providor; did you mean provider"),
        ("[targets.p]\nprovider = 5", r"targets.p.provider: input should be a valid string"),
        ("[targets.p]\nprovider = 'local'\ndtype = 'fp4'", "targets.p.dtype: input should be 'auto'"),
        ("[targets.p]\nprovider = 'local'\nmax_retries = -1", "greater than or equal to 0"),
        ("[targets.p]\nprovider = 'local'\ntimeout = {conect = 1}", "timeout"),
        ("[targets.p]\nprovider = 'local'\ntimeout = inf", "less than or equal to 1000000000"),
        ("[targets.p]\nprovider = 'local'\ntimeout = {total = 1e300}", "less than or equal to 1000000000"),
        ("[targets.p]\nmodel = 'x'", "Target 'p' has no provider: set targets.p.provider"),
        ("targets = 5", r"write \[targets.NAME\]"),
        ("[targets]\np = 5", r"write \[targets.p\]"),
        ("default = 5\n[targets.p]\nprovider = 'local'", "default is the name of a target, not int"),
        ("[targets.p", "is not valid TOML"),
        ("[targets.p]\nprovider = 'local'\nmodel = ' '", "targets.p.model: is empty; leave it out"),
        ("[targets.p]\nprovider = 'local'\ndevice = 'quantum'", "a device is auto, cpu, cuda"),
        ("[targets.p]\nprovider = 'openai'\nprices = {inputs = 1}", "no price for 'inputs'; known are input"),
        ("[targets.p]\nprovider = 'openai'\nprices = {input = -1}", "input: a price per million tokens is 0"),
        ("[targets.p]\nprovider = 'openai'\nprices = {input = nan}", "a price per million tokens is 0"),
        ("[targets.p]\nprovider = 'openai'\nproxy = 'foo bar'", "a host and a port"),
        ("[targets.p]\nprovider = 'openai'\nproxy = 'http://h:99999'", "a host and a port"),
        ("[targets.p]\nprovider = 'openai'\nheaders = {'a b' = 'x'}", "cannot be the name of a header"),
        ("[edit]\nx = 1", "there is no key edit"),
        ("[targets.p]\nprovider = 'openai'\napi_key_env = 'A'\napi_key_file = 'B'", "one source for the key"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(write: Write, text: str, message: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError, match=message) as caught:
        resolved()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value) or "Target 'p'" in str(caught.value)


def test_a_byte_order_mark_before_the_file_does_not_matter(here: Path) -> None:
    (here / "specclient.toml").write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    assert resolved().model == "file-model"


@pytest.mark.parametrize("address", ["http://h:999999/v1", "http://h:x/v1"])
def test_an_address_with_an_impossible_port_is_refused(here: Path, address: str) -> None:
    with pytest.raises(ConfigError, match=r"base_url of target .* is no address: .*[Pp]ort"):
        Client(provider="openai_compatible", model="m", base_url=address)


def test_the_embedded_engine_needs_no_entry(write: Write, here: Path) -> None:
    assert resolved("local").provider == "local"
    write(FILE)
    assert resolved("local").dtype == "float32"
    assert resolved("local", {"SPECCLIENT_TARGETS__LOCAL__DTYPE": "int8"}).dtype == "int8"


def test_unknown_targets(write: Write, here: Path) -> None:
    with pytest.raises(ConfigError, match="No configuration file was found, so there is no target prod"):
        resolved("prod")
    with pytest.raises(ConfigError, match=r"No target: name one of a specclient\.toml"):
        resolved()
    write(FILE)
    with pytest.raises(ConfigError, match="no target pord; did you mean prod"):
        resolved("pord")
    write('default = "gone"\n[targets.a]\nprovider="local"')
    with pytest.raises(ConfigError, match=r"no target gone.*default target"):
        resolved()
    with pytest.raises(ConfigError, match="no target field tmeout; did you mean timeout"):
        resolved("a", tmeout=1)


@pytest.mark.parametrize(
    ("variable", "text"),
    [("MAX_RETRIES", "many"), ("VERIFY", "maybe"), ("TIMEOUT", "soon"), ("HEADERS", "{"), ("DTYPE", "fp4")],
)
def test_wrong_variables_are_named(here: Path, variable: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"SPECCLIENT_{variable}"):
        resolved(env={"SPECCLIENT_PROVIDER": "local", f"SPECCLIENT_{variable}": text})


MISSPELT = {
    "SPECCLIENT_MODLE": "SPECCLIENT_MODEL",
    "SPECCLIENT_BASEURL": "SPECCLIENT_BASE_URL",
    "SPECCLIENT_PROFLIE": "SPECCLIENT_PROFILE",
    "SPECCLIENT_TARGETS__PROD__MODLE": "SPECCLIENT_TARGETS__PROD__MODEL",
    "SPECCLIENT_TARGETS__PRDO__MODEL": "SPECCLIENT_TARGETS__PROD__MODEL",
    "SPECCLIENT_TARGETS__BOX__MODELL": "SPECCLIENT_TARGETS__BOX__MODEL",
}


@pytest.mark.parametrize(("variable", "meant"), MISSPELT.items())
def test_a_misspelt_variable_is_told(write: Write, variable: str, meant: str) -> None:
    write(FILE)
    env = {variable: "secret-value", "SPECCLIENT_TARGETS__BOX__PROVIDER": "vllm"}
    with pytest.warns(
        ConfigWarning, match=f"{variable} is not read by specclient; did you mean {meant}"
    ) as said:
        load_config(env=env)
    assert len(said) == 1
    assert "secret-value" not in str(said[0].message)


def test_the_users_own_variables_are_left_alone(write: Write) -> None:
    write(FILE + '[targets.k]\nprovider = "openai"\napi_key_env = "SPECCLIENT_API_KEYS"\n')
    names = (
        "SPECCLIENT_API_KEYS",
        "SPECCLIENT_XYZ",
        "SPECCLIENT_LOG",
        "SPECCLIENT_CACHE",
        "SPECCLIENT_MODEL_SOURCES",
        "SPECCLIENT_TIMEOUT",
    )
    load_config(env=dict.fromkeys(names, "1"))


def test_variables_of_every_kind(here: Path) -> None:
    target = resolved(
        env={
            "SPECCLIENT_PROVIDER": "local",
            "SPECCLIENT_FALLBACK": "a, b",
            "SPECCLIENT_VERIFY": "off",
            "SPECCLIENT_TIMEOUT": "2.5",
            "SPECCLIENT_OVERRIDES": '{"base_model": "m"}',
        }
    )
    assert target.fallback == ("a", "b")
    assert target.verify is False
    assert target.timeout == Timeout.of(2.5)
    assert target.overrides == {"base_model": "m"}


def test_openai_variables(here: Path) -> None:
    env = {
        "OPENAI_API_KEY": "sk",
        "OPENAI_ORG_ID": "o",
        "OPENAI_PROJECT_ID": "p",
        "OPENAI_CUSTOM_HEADERS": "a: 1\nb:2",
    }
    target = resolved(env=env)
    assert (target.provider, target.organization, target.project) == ("openai", "o", "p")
    assert target.headers == {"a": "1", "b": "2"}
    moved = resolved(env=env | {"OPENAI_BASE_URL": "https://api.fireworks.ai/inference/v1"})
    assert moved.provider == "fireworks", "an address tells who answers there"
    assert moved.api_key_env == "OPENAI_API_KEY"
    assert resolved(env=env, provider="groq").organization is None


def test_an_address_alone(here: Path) -> None:
    assert resolved(base_url="http://localhost:8000/v1").provider == "openai_compatible"
    assert resolved(base_url="https://api.openai.com/v1").provider == "openai"


# Keys


def test_keys_from_everywhere(write: Write, here: Path) -> None:
    (here / "key.txt").write_text("from-file\n")
    script = write("#!/bin/sh\necho from-command", "key.sh")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    cases = {
        "api_key": ("literal", "literal"),
        "api_key_env": ("NAMED", "from-env"),
        "api_key_file": ("key.txt", "from-file"),
        "api_key_command": ("./key.sh", "from-command"),
    }
    env = {"NAMED": "from-env", "OPENAI_API_KEY": "documented"}
    for field, (value, expected) in cases.items():
        target = resolved(env=env, provider="openai", **{field: value})
        found = api_key(target, env, key_env=("OPENAI_API_KEY",), directory=here)
        assert found is not None
        assert found.get_secret_value() == expected
    found = api_key(resolved(provider="openai"), env, key_env=("OPENAI_API_KEY",))
    assert found is not None
    assert found.get_secret_value() == "documented"
    assert api_key(resolved(provider="vllm"), env) is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"api_key_env": "GONE"}, "set the environment variable GONE"),
        ({"api_key_file": "gone.txt"}, "api_key_file of target 'openai' cannot be read"),
        ({"api_key_file": "empty.txt"}, "is empty"),
        ({"api_key_command": "false"}, "exit code 1"),
        ({"api_key_command": "true"}, "printed nothing"),
        ({"api_key_command": "no-such-command --key sk-secret"}, r"\(no-such-command\) did not work"),
        ({}, r"set the environment variable OPENAI_API_KEY, pass api_key="),
    ],
)
def test_missing_keys_say_how_to_mend_it(here: Path, source: dict[str, str], message: str) -> None:
    (here / "empty.txt").write_text("\n")
    target = resolved(provider="openai", **source)
    with pytest.raises(ConfigError, match=message) as caught:
        api_key(target, {}, key_env=("OPENAI_API_KEY",), directory=here)
    assert "sk-secret" not in str(caught.value)


def test_an_argument_beats_the_files_source(write: Write) -> None:
    write(FILE)
    target = resolved(api_key="mine")
    assert target.api_key_env is None
    found = api_key(target, {})
    assert found is not None
    assert found.get_secret_value() == "mine"


def test_secrets_are_masked(here: Path) -> None:
    target = resolved(
        provider="openai",
        api_key="sk-secret",
        headers={"x-a": "sk-secret"},
        proxy="http://u:sk-secret@h:1",
        base_url="https://u:sk-secret@h/v1",
        query={"api_key": "sk-secret", "api-version": "1"},
        api_key_command=None,
    )
    shown = target.shown()
    assert "sk-secret" not in str(shown) + repr(target)
    assert shown["api_key"] == ("**********", "argument")
    assert shown["proxy"][0] == "http://**********@h:1"
    assert shown["query"][0] == "api_key=**********, api-version=1"
    assert shown["model"] == ("", "default")
    command = resolved(provider="openai", api_key_command="pass show sk-secret").shown()["api_key_command"]
    assert command[0] == "pass …"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"timeout": "soon"}, "not str"),
        ({"timeout": {"connect": -1}}, "timeout.connect"),
        ({"timeout": {"conect": 1}}, "timeout.conect"),
        ({"proxy": "ftp://u:sk-secret@h:1"}, "begins with http://"),
        ({"proxy": "//", "timeout": object()}, "not object"),
    ],
)
def test_values_of_the_wrong_kind(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        resolved(provider="openai", **values)
    assert "sk-secret" not in str(caught.value)


def test_a_literal_key_in_a_tracked_file_is_warned_of(write: Write, here: Path) -> None:
    path = write('[targets.a]\nprovider = "openai"\napi_key = "sk-secret"\n')
    subprocess.run(["git", "init", "-q"], cwd=here, check=True)
    load_config(env={})
    subprocess.run(["git", "add", path.name], cwd=here, check=True)
    with pytest.warns(ConfigWarning, match="tracked by git") as caught:
        load_config(env={})
    assert "sk-secret" not in str(caught[0].message)


def test_other_sections_are_kept_for_their_rooms(write: Write) -> None:
    write('[tracing]\nphases = "all"\n[serve]\nport = 1\n[profiles.ci.serve]\nport = 2\n')
    assert load_config(env={}).settings == {"tracing": {"phases": "all"}, "serve": {"port": 1}}
    assert load_config(env={}, profile="ci").settings["serve"] == {"port": 2}


def test_a_target_and_a_provider_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match=r"^Name target 'prod' or provider 'openai', not both"):
        resolved("prod", provider="openai")
