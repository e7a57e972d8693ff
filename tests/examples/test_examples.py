"""The examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object, folder: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=110)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_switching_providers_says_what_would_be_sent(tmp_path: Path) -> None:
    told = run("switching_providers.py", folder=tmp_path)
    assert "openai: forwarded" in told
    assert "openai on 2027-02-01: withheld" in told
    assert "local: local" in told


@pytest.mark.parametrize(
    "name", sorted(path.name for path in EXAMPLES.glob("*.py") if "tracing" not in path.name)
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
