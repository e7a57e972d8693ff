"""Parts whose libraries are extras say which extra, where they are imported without it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("room", "missing", "extra"),
    [
        ("specclient.gateway", "starlette", "serve"),
        ("specclient.gateway", "uvicorn", "serve"),
        ("specclient.gateway", "prometheus_client", "serve"),
        ("specclient.tracing.export", "opentelemetry.sdk", "otel"),
    ],
)
def test_the_extra_is_named(room: str, missing: str, extra: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import {room}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert f"needs {missing}" in last
    assert last.endswith(f": pip install 'specclient[{extra}]'.")
