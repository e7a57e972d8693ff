"""A gateway in a thread, before an endpoint that is scripted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="starlette is not installed (specclient[serve])")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (specclient[serve])")

from specclient.config import Config, load_config
from specclient.gateway.run import Server, make_server
from tests.server import ScriptedServer


@pytest.fixture
def upstream() -> Iterator[ScriptedServer]:
    """The endpoint behind the gateway."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def config(upstream: ScriptedServer, tmp_path: Path) -> Config:
    """Two targets at the same endpoint: one documents predictions, of the other nothing is known."""
    path = tmp_path / "specclient.toml"
    path.write_text(
        f"""
        default = "plain"
        [targets.plain]
        provider = "openai_compatible"
        base_url = "{upstream.url}"
        model = "some-model"
        api_key = "sk-upstream"
        max_retries = 0
        [targets.predicting]
        provider = "fireworks"
        base_url = "{upstream.url}"
        model = "accounts/fireworks/models/x"
        api_key = "sk-upstream"
        max_retries = 0
        infer_prediction = true
        """
    )
    return load_config(path, env={})


class Running:
    """A gateway in a thread, on a port of its own."""

    def __init__(self, config: Config, **arguments: Any) -> None:
        self.url = ""
        ready = threading.Event()

        def on_ready(url: str) -> None:
            self.url = url
            ready.set()

        self.server: Server = make_server(config, port=0, on_ready=on_ready, **arguments)
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()
        assert ready.wait(20)
        self.client = httpx.Client(base_url=self.url, timeout=20)

    def post(self, **body: Any) -> httpx.Response:
        return self.client.post(
            "/chat/completions", json={"messages": [{"role": "user", "content": "x"}]} | body
        )

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def start(config: Config) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def make(**arguments: Any) -> Running:
        running.append(Running(arguments.pop("config", config), **arguments))
        return running[-1]

    yield make
    for gateway in running:
        gateway.stop()  # does nothing the second time


@pytest.fixture
def gateway(start: Callable[..., Running]) -> Running:
    return start()
