"""What `config show` shows is what a call gets, whichever layer it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specclient.config import FIELDS, load_config, resolve_target, used_targets
from specclient.errors import ConfigError

FILE = """
default = "prod"
[targets.prod]
provider = "openai"
model = "file-model"
[targets.spare]
provider = "vllm"
base_url = "http://spare:8000"
[profiles.ci]
default = "spare"
[profiles.ci.targets.spare]
model = "ci-model"
"""

TEXTS = {
    "api_key_command": "pass show key",
    "headers": '{"x-team": "a"}',
    "query": '{"v": "1"}',
    "fallback": "spare",
    "on_unsupported": "error",
    "timeout": "3",
    "max_retries": "5",
    "max_response_bytes": "1000",
    "propagate": "never",
    "proxy": "http://h:1",
    "base_url": "http://elsewhere:1",
    "provider": "vllm",
    "overrides": "{}",
    "dtype": "int8",
    "device": "cpu",
    "max_context": "99",
    "prices": '{"input": 1}',
    "tags": '{"workload": "w"}',
    "economics": '{"gate": "auto"}',
    **dict.fromkeys(
        ("prefer_prediction", "detect", "put_in_prompt", "use_corpus", "retry_after_content", "verify"),
        "true",
    ),
    "infer_prediction": "true",
}


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specclient.toml").write_text(FILE)


def used(**env: str) -> Any:
    return used_targets(load_config(env={"HOME": "/", **env}))


@pytest.mark.parametrize("prefix", ["SPECCLIENT_", "SPECCLIENT_TARGETS__PROD__"])
@pytest.mark.parametrize("field", FIELDS)
def test_every_variable_of_the_default_target_is_shown(field: str, prefix: str) -> None:
    env = {"HOME": "/", prefix + field.upper(): TEXTS.get(field, "text")}
    config = load_config(env=env)
    called = resolve_target(config=config)  # what a client gets that names nothing
    shown = used_targets(config).targets["prod"].shown()
    assert shown == called.shown()
    assert shown[field][1] == prefix + field.upper()


def test_variables_of_the_default_target_leave_the_others_alone() -> None:
    found = used(SPECCLIENT_MODEL="zzz")
    assert found.targets["prod"].shown()["model"] == ("zzz", "SPECCLIENT_MODEL")
    assert found.targets["spare"].model is None
    named = resolve_target("prod", config=load_config(env={"SPECCLIENT_MODEL": "zzz"}))
    assert named.model == "file-model"


def test_the_environment_chooses_the_default() -> None:
    assert used().default == "prod"
    assert used().default_origin.endswith("specclient.toml: default")
    found = used(SPECCLIENT_TARGET="spare", SPECCLIENT_MODEL="zzz")
    assert (found.default, found.default_origin) == ("spare", "SPECCLIENT_TARGET")
    assert (found.targets["spare"].model, found.targets["prod"].model) == ("zzz", "file-model")


def test_a_profile_is_shown_as_what_it_is() -> None:
    found = used(SPECCLIENT_PROFILE="ci")
    assert found.default == "spare"
    assert found.default_origin.endswith("profile ci: default")
    assert found.targets["spare"].shown()["model"][0] == "ci-model"


def test_the_engine_that_needs_no_entry_is_shown_where_it_is_used() -> None:
    assert "local" not in used().targets
    found = used(SPECCLIENT_TARGET="local", SPECCLIENT_MODEL="zzz")
    assert found.targets["local"].shown()["model"] == ("zzz", "SPECCLIENT_MODEL")
    assert used(SPECCLIENT_TARGETS__LOCAL__DTYPE="int8").targets["local"].dtype == "int8"


def test_targets_that_only_the_environment_describes_are_shown() -> None:
    found = used(
        SPECCLIENT_TARGETS__BOX__BASE_URL="http://box:8000", SPECCLIENT_TARGETS__SPARE__PROVIDER="sglang"
    )
    assert found.targets["box"].base_url == "http://box:8000"
    assert found.targets["spare"].provider == "sglang"
    assert list(found.targets) == ["box", "prod", "spare"]


def test_without_a_default_the_environment_may_describe_one(tmp_path: Path) -> None:
    (tmp_path / "specclient.toml").unlink()
    assert used().default is None
    for name, value, provider in (
        ("OPENAI_API_KEY", "k", "openai"),
        ("SPECCLIENT_PROVIDER", "local", "local"),
    ):
        found = used(**{name: value})
        assert (found.default, found.default_origin) == (provider, name)
        assert (
            found.targets[provider].shown() == resolve_target(config=load_config(env={name: value})).shown()
        )
    (tmp_path / "specclient.toml").write_text(
        FILE.replace('default = "prod"', "").replace("prod]", "openai]")
    )
    found = used(OPENAI_API_KEY="k")
    assert found.default == "openai of the environment"
    assert found.targets[found.default].model is None


def test_a_value_that_no_call_could_use_is_told() -> None:
    with pytest.raises(ConfigError, match="SPECCLIENT_TIMEOUT: a number of seconds"):
        used(SPECCLIENT_TIMEOUT="soon")


def test_a_default_that_is_nowhere_hides_nothing() -> None:
    found = used(SPECCLIENT_TARGET="prd")
    assert (found.default, list(found.targets)) == ("prd", ["prod", "spare"])
