"""Putting the middleware in and taking it out again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from specclient.errors import ConfigError
from specclient.middleware import unwrap, wrap
from specclient.middleware.transport import AsyncTransport, SyncTransport
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.sdks import KINDS, Sdk


def http_clients_of(sdk: Sdk) -> list[Any]:
    if sdk.kind.name == "mistralai":
        return [sdk.client.sdk_configuration.client, sdk.client.sdk_configuration.async_client]
    return [sdk.client._client]


@pytest.mark.sdk
@pytest.mark.parametrize("name", list(KINDS))
def test_the_transports_stay_and_come_back(name: str, is_async: bool, open_sdk: Callable[..., Sdk]) -> None:
    sdk = open_sdk(name, is_async=is_async)
    before = [(client._transport, dict(client._mounts)) for client in http_clients_of(sdk)]
    assert wrap(sdk.client) is sdk.client
    for client, (transport, _) in zip(http_clients_of(sdk), before, strict=True):
        assert isinstance(client._transport, SyncTransport | AsyncTransport)
        assert client._transport.inner is transport
    assert unwrap(sdk.client) is sdk.client
    assert [(client._transport, dict(client._mounts)) for client in http_clients_of(sdk)] == before


def test_proxies_are_wrapped_where_they_are() -> None:
    proxy = httpx.HTTPTransport()
    client = httpx.Client(mounts={"all://": proxy, "all://127.0.0.1": None})
    wrap(client)
    wrapped = {pattern.pattern: transport for pattern, transport in client._mounts.items()}
    assert wrapped["all://127.0.0.1"] is None
    assert isinstance(wrapped["all://"], SyncTransport)
    assert wrapped["all://"].inner is proxy
    unwrap(client)
    assert {p.pattern: t for p, t in client._mounts.items()} == {"all://": proxy, "all://127.0.0.1": None}
    client.close()


def test_draft_corpora_are_refused_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that would withhold the prediction for want of a permission that was given misleads."""
    server = '[targets.drafts]\nprovider = "sglang"\nmodel = "m"\nuse_corpus = true\n'
    (tmp_path / "specclient.toml").write_text(server, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with httpx.Client() as client:
        with pytest.raises(ConfigError, match=r"out of target 'drafts', or call .* specclient\.Client"):
            wrap(client, target="drafts")
        with pytest.raises(ConfigError, match="out of the arguments"):
            wrap(client, provider="sglang", use_corpus=True)
        assert not isinstance(client._transport, SyncTransport)
        wrap(client, target="drafts", use_corpus=False)
        assert isinstance(client._transport, SyncTransport)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"provider": "opnai"}, "Did you mean openai"),
        (
            {"overrides": {"predicton": True}},
            r"the overrides of wrap\(\): overrides.predicton: .*'prediction'",
        ),
        ({"provider": "vllm", "overrides": {"speculation": {"method": "nggram"}}}, "did you mean 'ngram'"),
    ],
)
def test_wrong_facts_are_refused_where_they_are_given(arguments: dict[str, Any], words: str) -> None:
    with httpx.Client() as client:
        with pytest.raises(ConfigError, match=words):
            wrap(client, **arguments)
        assert not isinstance(client._transport, SyncTransport)


def test_wrapping_twice_is_wrapping_once() -> None:
    client = httpx.Client()
    wrap(client, provider="openai")
    around = client._transport
    wrap(client, provider="openai")
    assert client._transport is around
    with pytest.raises(ConfigError, match=r"wrapped already, with other options"):
        wrap(client, provider="groq")
    unwrap(client)
    wrap(client, provider="groq")
    assert client._transport.settings.options.provider == "groq"
    client.close()


def test_unwrapping_what_is_not_wrapped_does_nothing() -> None:
    client = httpx.Client()
    transport = client._transport
    assert unwrap(client) is client
    assert client._transport is transport
    client.close()


def test_a_transport_that_somebody_kept_is_inert_after_unwrap(server: ScriptedServer) -> None:
    client = httpx.Client()
    wrap(client, provider="openai")
    kept = client._transport
    unwrap(client)
    server.play(scripted.reply(scripted.completion()))
    with httpx.Client(transport=kept) as other:
        answer = other.post(f"{server.url}/chat/completions", json={"model": "m", "messages": []})
    assert "specclient" not in answer.json()
    client.close()


@pytest.mark.parametrize("thing", [object(), None, "client", httpx.HTTPTransport()])
def test_anything_else_is_refused_with_a_sentence(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"specclient.wrap takes a client object of the openai, groq"):
        wrap(thing)


def test_unknown_arguments_are_refused() -> None:
    with httpx.Client() as client:
        with pytest.raises(TypeError, match="no argument 'modle'"):
            wrap(client, modle="x")
        with pytest.raises(ConfigError, match="not both"):
            wrap(client, target="a", provider="b")


def test_what_is_not_a_completion_passes_byte_for_byte(server: ScriptedServer) -> None:
    bodies = [b'{"input": "x",  "prediction": "y"}', b"\x00\xff raw", b'{"model":"m"}']
    paths = ["/embeddings", "/files", "/fim/completions"]
    with httpx.Client() as client:
        wrap(client, provider="openai")
        for path, body in zip(paths, bodies, strict=True):
            server.play(scripted.reply(b"<p>whatever</p>"))
            kind = "application/json" if body.startswith(b"{") else "application/octet-stream"
            answer = client.post(f"{server.url}{path}", content=body, headers={"content-type": kind})
            assert answer.content == b"<p>whatever</p>"
        server.play(scripted.reply({"data": []}))
        assert client.get(f"{server.url}/models").json() == {"data": []}
    assert [request.body for request in server.requests[:3]] == bodies


def test_a_streamed_upload_to_a_completions_path_is_left_alone(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.play(scripted.reply(scripted.completion()))
    with httpx.Client() as client:
        wrap(client, provider="openai", strict=True)
        content = b'{"model": "m", "messages": []}'
        client.post(
            f"{server.url}/chat/completions",
            content=iter([content]),
            headers={"content-type": "application/json", "content-length": str(len(content))},
        )
    assert server.requests[0].body == content
    assert caplog.text == ""


def test_only_the_family_in_use_is_imported() -> None:
    code = """
        import sys, httpx
        import specclient.middleware as middleware
        client = middleware.wrap(httpx.Client())
        assert "httpx2" not in sys.modules, "the other family was imported"
    """
    subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], check=True)


def test_the_same_holds_for_the_other_family() -> None:
    httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
    client = httpx2.Client()
    wrap(client)
    assert isinstance(client._transport, httpx2.BaseTransport)
    assert not isinstance(client._transport, httpx.BaseTransport)
    client.close()


def test_a_target_brings_its_provider_policy_and_corrections(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "specclient.toml"
    path.write_text(
        """
        [targets.prod]
        provider = "fireworks"
        model = "m"
        on_unsupported = "error"
        [targets.prod.overrides.prediction]
        state = "undocumented"
        [targets.other]
        provider = "groq"
        model = "m"
        """
    )
    monkeypatch.setenv("SPECCLIENT_CONFIG", str(path))
    body = {"model": "m", "messages": [], "prediction": "x"}
    with httpx.Client(base_url=server.url) as client:
        wrap(client, target="prod")
        answer = client.post("/chat/completions", json=body)
        assert answer.status_code == 400
        assert "Fireworks" in answer.json()["error"]["message"]
        unwrap(client)
        wrap(client, target="prod", on_unsupported="withhold")
        server.play(scripted.reply(scripted.completion()))
        report = client.post("/chat/completions", json=body).json()["specclient"]
        assert (report["target"], report["prediction"]["outcome"]) == ("prod", "withheld")
        with pytest.raises(ConfigError, match="other options"):
            wrap(client, target="other")
        with pytest.raises(ConfigError, match="missing"):
            wrap(httpx.Client(), target="missing")


def test_a_server_that_drafts_from_its_prompt_gets_the_text_there(server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion()))
    known = "def bar():\n    return 1\n" * 5
    body = {"model": "m", "messages": [{"role": "user", "content": "Go on."}], "prediction": known}
    with httpx.Client(base_url=server.url) as client:
        wrap(client, provider="vllm", put_in_prompt=True, overrides={"speculation": {"method": "ngram"}})
        report = client.post("/chat/completions", json=body).json()["specclient"]
    assert report["prediction"]["outcome"] == "via_prompt"
    assert known.strip() in str(server.requests[0].json["messages"]).replace("\\n", "\n")
