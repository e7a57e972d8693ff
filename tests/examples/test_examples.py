"""The examples run as they stand."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("compiled_once")

EXAMPLES = Path(__file__).parents[2] / "examples"


WITHOUT = """
import runpy, sys
sys.modules[sys.argv[1]] = None
sys.path.insert(0, sys.argv[2].rpartition("/")[0])
sys.argv[:] = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(name: str, *arguments: object, folder: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=110)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("drop_in.py", "openai"),
        ("gateway_client.py", "openai"),
        ("gateway_client.py", "starlette"),
        ("wrap_sdks.py", "groq"),
        ("tracing_collector.py", "opentelemetry.sdk"),
        ("tracing_phoenix.py", "opentelemetry.sdk"),
        ("tracing_mlflow.py", "opentelemetry.exporter"),
    ],
)
def test_what_is_not_installed_is_named_in_one_line(name: str, missing: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT, missing, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=110)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "install" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("tracing_collector.py", "--endpoint"),
        ("tracing_phoenix.py", "--phoenix"),
        ("tracing_mlflow.py", "--mlflow"),
    ],
)
def test_nobody_to_send_to_is_told_before_the_call(name: str, option: str, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        command = [sys.executable, str(EXAMPLES / name), option, address]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=110)
    assert done.returncode == 1
    assert done.stderr == f"nothing answers at {address}: start it, or name another address (--help)\n"


def test_switching_providers_says_what_would_be_sent(tmp_path: Path) -> None:
    told = run("switching_providers.py", folder=tmp_path)
    assert "openai: forwarded" in told
    assert "openai on 2027-02-01: withheld" in told
    assert "local: local" in told


@pytest.mark.parametrize(
    "name", sorted(path.name for path in EXAMPLES.glob("[!_]*.py") if "tracing" not in path.name)
)
def test_every_example_explains_itself(name: str, tmp_path: Path) -> None:
    if name == "drop_in.py":
        pytest.importorskip("openai")
    if name != "switching_providers.py":
        assert f"examples/{name}" in run(name, "--help", folder=tmp_path)


@pytest.mark.model
def test_the_quickstart_tells_what_the_prediction_bought(smollm2_path: Path, tmp_path: Path) -> None:
    told = run("quickstart.py", "--model", smollm2_path, folder=tmp_path)
    assert "prediction: local" in told
    assert "decode" in told
    assert "engine" in told


@pytest.mark.model
def test_several_streams_run_at_once(smollm2_path: Path, tmp_path: Path) -> None:
    told = run("async_streams.py", "--model", smollm2_path, "--streams", 2, folder=tmp_path)
    assert told.count("predicted tokens accepted") == 2
    assert "of loading the engine" in told
