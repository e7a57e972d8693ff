"""A hosted endpoint needs its key; a server of one's own needs none, and gets one that is set."""

from __future__ import annotations

import pytest

import specclient
from specclient_providers import provider_names, resolve
from tests import server as scripted
from tests.server import ScriptedServer

SERVERS = [name for name in provider_names() if resolve(name).self_hosted and name != "local"]
HOSTED = [name for name in provider_names() if resolve(name).key_env and name not in SERVERS]


@pytest.mark.parametrize("provider", SERVERS)
def test_a_server_is_asked_without_a_key(provider: str) -> None:
    with (
        ScriptedServer() as server,
        specclient.Client(provider=provider, base_url=server.url, model="m") as client,
    ):
        server.play(scripted.reply(scripted.completion("done")))
        client.chat.completions.create(messages=[{"role": "user", "content": "x"}])
        assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("provider", HOSTED)
def test_a_hosted_endpoint_without_its_key_says_which_variable_to_set(provider: str) -> None:
    with pytest.raises(specclient.ConfigError, match=resolve(provider).key_env[0]):
        specclient.Client(provider=provider, base_url="https://endpoint.example", model="m")


@pytest.mark.parametrize("address", ["localhost:8000", "127.0.0.1:8000/v1", "ftp://h.example", "h.example"])
def test_an_address_without_http_is_refused_at_once_and_shown_whole(address: str) -> None:
    with pytest.raises(specclient.ConfigError, match=f"base_url '{address}"):
        specclient.Client(provider="vllm", base_url=address, model="m")


def test_a_servers_key_is_sent_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-mine")
    with (
        ScriptedServer() as server,
        specclient.Client(provider="vllm", base_url=server.url, model="m") as client,
    ):
        server.play(scripted.reply(scripted.completion("done")))
        client.chat.completions.create(messages=[{"role": "user", "content": "x"}])
        assert server.requests[0].headers["authorization"] == "Bearer sk-mine"
