"""Our own server tells what it is, whatever stands behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import specclient
from specclient.config import load_config
from specclient_providers.detection import detect
from specclient_providers.signs import Answer
from tests.gateway.conftest import Running


def test_a_probe_finds_the_gateway_and_not_what_it_serves(tmp_path: Path) -> None:
    path = tmp_path / "specclient.toml"
    path.write_text('[targets.it]\nprovider = "vllm"\nmodel = "m"\n', encoding="utf-8")
    gateway = Running(load_config(path, env={}))

    def fetch(method: str, page: str) -> Answer | None:
        response = gateway.client.request(method, gateway.url.removesuffix("/v1") + page)
        text = response.headers["content-type"].startswith("text")
        return response.status_code, response.headers, response.text if text else response.json()

    try:
        found = detect(fetch)
    finally:
        gateway.stop()
    assert (found.provider, found.version) == ("specclient", specclient.__version__)
    assert found.works == ("prediction is taken and used",)
