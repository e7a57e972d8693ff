"""Who may ask, and how much."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from specclient.config import Config
from specclient.errors import ConfigError
from specclient.gateway import ServeSettings, create_app
from tests import server as scripted
from tests.server import ScriptedServer

BODY = {"model": "plain", "messages": []}


def ask(
    config: Config,
    path: str = "/v1/chat/completions",
    *,
    settings: dict[str, Any] | None = None,
    **request: Any,
) -> httpx.Response:
    """One request to the application, without a socket. `request` goes to httpx."""

    async def main() -> httpx.Response:
        app = create_app(config, ServeSettings.of(config, **(settings or {})))
        base = request.pop("base_url", "http://localhost:8377")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base) as client:
            method = request.pop("method", "POST")
            if method == "POST" and not {"json", "content"} & request.keys():
                request["json"] = BODY
            return await client.request(method, path, **request)

    return asyncio.run(main())


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1:8377", "[::1]:8377"])
def test_names_of_this_machine_are_known(config: Config, upstream: ScriptedServer, host: str) -> None:
    upstream.play(scripted.reply(scripted.completion()))
    assert ask(config, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:8377", "127.0.0.1.evil.example", ""]
)
def test_a_foreign_name_is_refused(config: Config, upstream: ScriptedServer, host: str) -> None:
    answer = ask(config, headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["error"]["message"]
    assert upstream.requests == []


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000"])
def test_web_pages_are_refused(config: Config, upstream: ScriptedServer, origin: str) -> None:
    answer = ask(config, headers={"origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert upstream.requests == []


def test_an_allowed_page_may_ask(config: Config, upstream: ScriptedServer) -> None:
    upstream.play(scripted.reply(scripted.completion()))
    settings = {"allowed_origins": ("http://localhost:3000",)}
    headers = {"origin": "http://localhost:3000"}
    answer = ask(config, settings=settings, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    preflight = headers | {"access-control-request-method": "POST"}
    assert ask(config, settings=settings, method="OPTIONS", headers=preflight).status_code == 200
    assert ask(config, settings=settings, headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_is_no_request(config: Config, upstream: ScriptedServer, kind: str) -> None:
    answer = ask(config, content=b'{"model": "plain", "messages": []}', headers={"content-type": kind})
    assert answer.status_code == 415
    assert upstream.requests == []


def test_a_token_is_asked_for(config: Config, upstream: ScriptedServer) -> None:
    upstream.respond = lambda _: scripted.reply(scripted.completion())
    settings = {"token": "sesame"}
    assert ask(config, settings=settings, headers={"authorization": "Bearer sesame"}).status_code == 200
    for given in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "sesame"},
        {"authorization": "Bearer "},
    ):
        answer = ask(config, settings=settings, headers=given)
        assert answer.status_code == 401
        assert "sesame" not in answer.text
        assert "SPECCLIENT_API_KEY" in answer.text
        wrong = given.get("authorization") == "Bearer wrong"
        assert ("is not this specclient server's" if wrong else "none came") in answer.text
    assert ask(config, "/v1/models", settings=settings, method="GET").status_code == 401
    assert ask(config, "/healthz", settings=settings, method="GET").json()["status"] == "ok"
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "my-machine"])
def test_an_open_address_needs_a_token(config: Config, host: str) -> None:
    with pytest.raises(ConfigError, match=r"set serve\.token_env"):
        ServeSettings.of(config, host=host)
    assert ServeSettings.of(config, host=host, token="t").token is not None


def test_a_token_comes_from_the_environment(config: Config) -> None:
    with pytest.raises(ConfigError, match="GATE_TOKEN, which is not set"):
        ServeSettings.of(config, token_env="GATE_TOKEN")
    from dataclasses import replace

    settings = ServeSettings.of(replace(config, env={"GATE_TOKEN": "sesame"}), token_env="GATE_TOKEN")
    assert settings.token is not None
    assert "sesame" not in repr(settings)


def test_a_wrong_setting_is_named(config: Config) -> None:
    with pytest.raises(ConfigError, match=r"argument: serve.port"):
        ServeSettings.of(config, port=70000)
    with pytest.raises(ConfigError, match=r"serve.prot"):
        ServeSettings.of(config, prot=1)


def test_large_requests_are_refused(config: Config, upstream: ScriptedServer) -> None:
    settings = {"max_body_bytes": 1000}
    large = b'{"model": "plain", "messages": ["' + b"x" * 2000 + b'"]}'
    json_type = {"content-type": "application/json"}
    assert ask(config, settings=settings, content=large, headers=json_type).status_code == 413

    async def pieces() -> Any:
        for start in range(0, len(large), 100):
            yield large[start : start + 100]

    assert ask(config, settings=settings, content=pieces(), headers=json_type).status_code == 413
    assert upstream.requests == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b'{"stream": "yes", "messages": []}', b"\xff"])
def test_what_is_no_request_is_refused(config: Config, upstream: ScriptedServer, content: bytes) -> None:
    answer = ask(config, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert upstream.requests == []


def test_requests_beyond_the_limit_are_told_to_come_back(config: Config, upstream: ScriptedServer) -> None:
    upstream.respond = lambda _: scripted.sse(scripted.Wait(0.3), scripted.chunk("a"), scripted.finish())

    async def main() -> list[httpx.Response]:
        app = create_app(config, ServeSettings.of(config, max_requests=2))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asked = [client.post("/v1/chat/completions", json=BODY | {"stream": True}) for _ in range(5)]
            return list(await asyncio.gather(*asked))

    answers = asyncio.run(main())
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429]
    assert next(a for a in answers if a.status_code == 429).headers["retry-after"] == "1"


def test_unknown_paths_are_told_in_openais_shape(config: Config) -> None:
    assert ask(config, "/v1/embeddings").json()["error"]["message"].startswith("This server has no such path")
    assert ask(config, "/v1/chat/completions", method="GET").status_code == 405


def test_a_target_without_its_key_is_not_served(tmp_path: Any) -> None:
    from specclient.config import load_config

    path = tmp_path / "specclient.toml"
    path.write_text('[targets.prod]\nprovider = "fireworks"\nmodel = "m"\n')
    with pytest.raises(ConfigError, match="Target 'prod' cannot be served"):
        create_app(load_config(path, env={}))
