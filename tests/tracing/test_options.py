"""A slip in a tracing option is told at once, in one sentence, whoever makes it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider
from tracing_helpers import Backend

import specclient
from specclient import TracingOptions
from specclient.errors import ConfigError

WRONG: dict[str, tuple[Any, str]] = {
    "telemetry": ("of", "on, enrich or off is expected, not 'of'"),
    "phases": ("al", "reported, all or none is expected, not 'al'"),
    "propagate": (True, "self_hosted, always or never is expected, not True"),
    "capture_content": (
        "SPAN",
        "NO_CONTENT, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT or None is expected, not 'SPAN'",
    ),
    "latency_aliases": ("no", "True or False is expected, not 'no'"),
    "usage_aliases": (1, "True or False is expected, not 1"),
    "langfuse_alias": (None, "True or False is expected, not None"),
    "openinference_alias": ({}, "True or False is expected, not dict"),
    "tracer_provider": ("sdk", r"an object with get_tracer() or None is expected, not 'sdk'"),
    "meter_provider": (NoOpTracerProvider(), "get_meter() or None is expected, not NoOpTracerProvider"),
    "logger_provider": (object, "get_logger() or None is expected, not type"),
}
IN_FILES = {
    "telemetry": ('"of"', "on, enrich or off is expected, not 'of'"),
    "phases": ('["all"]', "reported, all or none is expected, not list"),
    "propagate": ("false", "self_hosted, always or never is expected, not False"),
    "capture_content": ('"SPAN"', "SPAN_AND_EVENT or None is expected, not 'SPAN'"),
    "usage_aliases": ('"true"', "True or False is expected, not 'true'"),
}


@pytest.mark.parametrize("option", WRONG)
def test_an_argument(option: str) -> None:
    value, said = WRONG[option]
    with pytest.raises(ConfigError) as raised:
        TracingOptions(**{option: value})
    assert str(raised.value).startswith(f"TracingOptions: {option}: ")
    assert str(raised.value).endswith(f"{said}.")


@pytest.mark.parametrize("option", IN_FILES)
def test_the_configuration(option: str, tmp_path: Path) -> None:
    value, said = IN_FILES[option]
    path = tmp_path / "specclient.toml"
    path.write_text(f'[tracing]\n{option} = {value}\n[targets.a]\nprovider = "local"\n')
    with pytest.raises(ConfigError) as raised:
        specclient.Client(config=path)
    assert str(raised.value).startswith(f"{path}: tracing.{option}: ")
    assert str(raised.value).endswith(f"{said}.")


def test_what_is_no_options_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tracing is a specclient\.TracingOptions, not dict"):
        specclient.Client(provider="local", tracing={"phases": "all"})  # type: ignore[arg-type]
    path = tmp_path / "specclient.toml"
    for text in ('tracing = "on"\n', 'profile = "p"\n[profiles.p]\ntracing = "on"\n'):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"tracing is a table: write \[tracing\]"):
            specclient.Client(config=path, provider="local")


def test_what_is_right_is_taken(backend: Backend) -> None:
    backend.options(telemetry="enrich", phases="none", propagate="always", capture_content="EVENT_ONLY")
    TracingOptions(tracer_provider=ProxyTracerProvider(), meter_provider=NoOpMeterProvider())


@pytest.mark.parametrize(
    ("value", "told"), [("SPAN", True), ("true", True), ("false", False), ("", False), ("event_only", False)]
)
def test_the_standard_variable_is_no_error_but_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str, told: bool
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    with caplog.at_level(logging.WARNING):
        mode = TracingOptions().content
    assert mode == ("EVENT_ONLY" if value == "event_only" else "NO_CONTENT")
    assert ("NO_CONTENT or SPAN_ONLY or EVENT_ONLY or SPAN_AND_EVENT is expected" in caplog.text) == told
