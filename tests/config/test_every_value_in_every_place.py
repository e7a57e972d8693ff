"""Whatever stands in the file works or is a ConfigError of one sentence: every type in every place."""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import specclient
from specclient import Client, ConfigError, TracingOptions, load_config
from specclient.cli import config_check
from specclient.config import FIELDS, Timeout, used_targets
from specclient.config.serving import ServeSettings
from specclient.economics import EconomicsOptions
from specclient.gateway import create_app
from specclient_providers.overrides import Overrides

STRINGS = (
    "", " ", "x", "local", "prod", "a b", "a\nb", "\0", "é", "€", "'", '"', "~", "~nobody-is-called-this/x",
    "http://[::1/v1", "http://h:99999/v1", "http://é.invalid/v1", "http://\u2100.invalid/v1", "http://a b/v1",
    "/", "x" * 5000, "file/below", "-1",
)  # fmt: skip
OTHERS = (
    0, -1, 3, 10**30, 0.5, -0.0, float("inf"), float("nan"), True, False, date(2026, 1, 1), time(1, 2),
    datetime(2026, 1, 1), [], [[]], ["x", ""], [1, "x"], [{}], {}, {"": ""}, {"x": {}}, {"x": 1},
    {"x": "a\nb"},
)  # fmt: skip
VALUES = (*STRINGS, *OTHERS)
NESTED = {
    "timeout": Timeout.model_fields, "economics": EconomicsOptions.model_fields,
    "overrides": Overrides.model_fields, "headers": ("x-a",), "query": ("a",), "prices": ("input", "x"),
    "tags": ("workload",),
}  # fmt: skip
PLACES = [
    *((name,) for name in ("default", "profile", "targets", "profiles", "tracing", "serve", "tool", "x")),
    ("targets", "prod"), ("targets", ""), ("profiles", "p"), ("profiles", ""), ("profiles", "p", "targets"),
    ("profiles", "p", "default"), ("profiles", "p", "serve"), ("profiles", "p", "targets", "prod"),
    *(("targets", "prod", field) for field in (*FIELDS, "x")),
    *(("profiles", "p", "targets", "prod", field) for field in ("model", "base_url")),
    *(("targets", "prod", field, inner) for field, names in NESTED.items() for inner in (*names, "x")),
    *(("targets", "prod", "overrides", "prediction", name) for name in ("state", "shapes", "until")),
    *(("tracing", name) for name in (*TracingOptions.__dataclass_fields__, "x")),
    *(("serve", name) for name in (*ServeSettings.model_fields, "x")),
]  # fmt: skip
HERE = {
    "provider": "azure",
    "model": "m",
    "api_key": "k",
    "base_url": "http://localhost:1",
    "fallback": ["local"],
}


def as_toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{as_toml(key)} = {as_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return value.isoformat() if isinstance(value, date | time) else repr(value)


def document(place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A configuration that is right but for what stands at the place."""
    whole: dict[str, Any] = {"targets": {"prod": dict(HERE)}}
    if place[:1] in (("default",), ("profiles",)):
        whole["profile"] = "p"
    *way, last = place
    table = whole
    for step in way:
        table = table.setdefault(step, {})
    table[last] = value
    if place[2:3] and place[2].startswith("api_key_"):
        whole["targets"]["prod"].pop("api_key")
    return whole


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def run(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "x")

    (tmp_path / "file").write_text("not a folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", run)  # no made-up command is run
    return tmp_path


def uses(path: Path) -> Iterator[Any]:
    """What reads a configuration, each to be called by itself."""
    yield lambda: [target.shown() for target in used_targets(load_config(path)).targets.values()]
    yield lambda: Client(config=path).close()
    yield lambda: specclient.plan({"messages": []}, config=path)
    yield lambda: create_app(load_config(path))

    def check() -> None:
        found = load_config(path, unknown_keys=[])
        for name in found.targets:
            config_check.of_target(found, name, apart=found.targets)
        config_check.of_config(found)
        config_check.of_variables(found)

    yield check


def faults(path: Path, text: str) -> list[str]:
    """What was raised that is no ConfigError of one line."""
    path.write_text(text, encoding="utf-8")
    found = []
    for number, use in enumerate(uses(path)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use()
        except ConfigError as error:
            if "\n" in str(error).strip():
                found.append(f"{number}: {error!r}")
        except Exception as error:
            found.append(f"{number}: {type(error).__name__}: {error}")
    return found


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_every_type_in_every_place(here: Path, place: tuple[str, ...]) -> None:
    found = {}
    for value in VALUES:
        text = "\n".join(f"{as_toml(k)} = {as_toml(v)}" for k, v in document(place, value).items())
        if said := faults(here / "specclient.toml", text):
            found[repr(value)[:60]] = said
    assert found == {}


@pytest.mark.parametrize("field", FIELDS)
def test_every_text_in_every_variable(here: Path, field: str) -> None:
    found = {}
    more = (
        "{",
        "[1]",
        '{"a": 1}',
        '{"a": "€"}',
        "5",
        "true",
        "[" * 100_000,
        '{"\\ud800": "\\ud800"}',
        "\udce9",
    )
    for text in (*STRINGS, *more):
        env = {"SPECCLIENT_PROVIDER": "openai_compatible", "SPECCLIENT_BASE_URL": "http://localhost:1"}
        try:
            config = load_config(env={**env, f"SPECCLIENT_{field.upper()}": text})
            Client(config=config).close()
            for target in used_targets(config).targets.values():
                target.shown()
        except ConfigError as error:
            if "\n" in str(error):
                found[text[:20]] = repr(error)
        except Exception as error:
            found[text[:20]] = f"{type(error).__name__}: {error}"
    assert found == {}


ANY = st.recursive(
    st.sampled_from(VALUES) | st.text(max_size=5) | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(place=st.sampled_from(PLACES), value=ANY)
def test_made_up_values(here: Path, place: tuple[str, ...], value: Any) -> None:
    text = "\n".join(f"{as_toml(k)} = {as_toml(v)}" for k, v in document(place, value).items())
    assert faults(here / "specclient.toml", text) == []
