"""Real trace backends, started on loopback for a test or a screenshot and ended with all their children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def phoenix(command: str, folder: Path) -> Iterator[str]:
    """Arize Phoenix; gives its address."""
    port = free_port()
    environment = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    with _running([command, "serve"], environment, folder, f"{url}/healthz"):
        yield url


@contextlib.contextmanager
def mlflow(command: str, folder: Path) -> Iterator[str]:
    """An MLflow server; gives its address."""
    port = free_port()
    environment = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    store = ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    url = f"http://127.0.0.1:{port}"
    with _running([command, "server", *arguments, *store], environment, folder, f"{url}/health"):
        yield url


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str], folder: Path, health: str) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(health, process)
        yield
    finally:
        # The servers fork helpers that outlive them, so the whole group is ended.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def _wait_for(health: str, process: subprocess.Popen[bytes], seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.5)
    raise RuntimeError(f"no answer at {health} within {seconds} s")
