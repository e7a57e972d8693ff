"""Keys, prompts and predictions show nowhere; certificates are checked; redirects carry no key."""

from __future__ import annotations

import logging
import ssl
import traceback
from pathlib import Path
from typing import Any

import pytest

import specclient
from specclient.core.http import redirected
from specclient.core.pools import proxy_for
from specclient.core.send import Connect, Send
from tests.doors import KEY, MESSAGES, SyncDoor
from tests.server import ScriptedServer, chunk, completion, error, head, raw, reply, sse

PROMPT = "the secret prompt that a server may quote back"


def everything(thing: BaseException) -> str:
    """What a log of an error may hold."""
    parts = [str(thing), repr(thing), "".join(traceback.format_exception(thing))]
    parts += [repr(value) for value in vars(thing).values()]
    return "\n".join(parts)


def test_a_key_that_the_server_echoes(door: SyncDoor) -> None:
    echo = error(401, f"Incorrect API key provided: {KEY}", {"x-echo": KEY}, code=KEY)
    door.server.play(echo)
    with pytest.raises(specclient.AuthenticationError, match=r"provided: \*+") as caught:
        door.create()
    found = caught.value
    assert KEY not in everything(found)
    assert KEY not in found.response.text
    assert KEY not in str(found.headers)
    assert KEY not in str(found.request.headers.raw)


def test_a_key_echoed_inside_a_stream(door: SyncDoor) -> None:
    door.server.play(sse(chunk("a"), {"error": {"message": f"bad key {KEY}", "code": 401}}))
    with pytest.raises(specclient.AuthenticationError) as caught:
        door.read()
    assert KEY not in everything(caught.value)


def test_a_prompt_that_the_server_quotes(door: SyncDoor) -> None:
    door.server.play(
        error(400, f"cannot parse: {PROMPT!r}"), error(400, "no: known text that is long enough")
    )
    with pytest.raises(specclient.BadRequestError) as caught:
        door.create(messages=[{"role": "user", "content": PROMPT}])
    assert PROMPT not in str(caught.value)
    assert "cannot parse" in str(caught.value)


def test_nothing_shows_the_key(door: SyncDoor) -> None:
    client = door.make(headers={"x-secret": KEY}, proxy=f"http://user:{KEY}@127.0.0.1:1")
    destination = client.destinations[0]
    shown = [
        repr(client),
        str(client),
        repr(client.target),
        repr(destination.key),
        repr(client.target.shown()),
        repr(destination.send),
        repr(client.defaults),
    ]
    assert KEY not in "".join(shown)


def test_a_key_is_in_no_log_of_any_library(door: SyncDoor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    door.server.play(error(401, f"Incorrect API key provided: {KEY}"))
    with pytest.raises(specclient.AuthenticationError):
        door.create()
    assert KEY not in caplog.text


def test_nothing_of_a_call_is_logged(door: SyncDoor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    door.server.play(reply(completion("the answer")), sse(chunk("the answer")))
    door.create(messages=[{"role": "user", "content": PROMPT}], prediction=PROMPT)
    door.read(messages=[{"role": "user", "content": PROMPT}], prediction=PROMPT)
    ours = [record for record in caplog.records if record.name.startswith("specclient")]
    assert not any(
        text in str(record.getMessage()) for record in ours for text in (KEY, PROMPT, "the answer")
    )


@pytest.mark.parametrize("end", ["-✓", "\nx: y", "\x00", "\r"])
def test_a_key_no_header_can_hold(door: SyncDoor, end: str) -> None:
    key = "sk-schlüssel" + end
    with pytest.raises(specclient.ConfigError, match="argument: api_key: holds a") as caught:
        door.make(api_key=key)
    assert "schlüssel" not in everything(caught.value)
    door.make()
    with pytest.raises(specclient.ConfigError, match="header authorization") as caught:
        door.create(extra_headers={"authorization": f"Bearer {key}"})
    assert "schlüssel" not in everything(caught.value)
    assert door.server.requests == []


@pytest.mark.parametrize("name", ["x y", "x-ü"])
def test_a_header_no_request_can_hold(door: SyncDoor, name: str) -> None:
    with pytest.raises(specclient.ConfigError, match="not valid HTTP") as caught:
        door.create(extra_headers={name: "secret"})
    assert "secret" not in str(caught.value)


def test_a_redirect_to_the_same_host_is_followed(door: SyncDoor) -> None:
    door.server.play(
        raw(head(307, {"location": "/v1/elsewhere", "content-length": "0"}), keep=True), reply(completion())
    )
    assert door.create().choices[0].message.content == "Hello"
    assert door.server.requests[1].path == "/v1/elsewhere"
    assert door.server.requests[1].json["messages"] == MESSAGES
    assert door.server.requests[1].headers["authorization"] == f"Bearer {KEY}"


def test_a_redirect_to_another_host_carries_no_key(door: SyncDoor) -> None:
    door.make(headers={"x-team": "secret-ish"}, organization="org")
    with ScriptedServer() as other:
        door.server.play(
            raw(head(308, {"location": f"{other.url}/chat/completions", "content-length": "0"}), keep=True)
        )
        other.play(error(401, "who are you"))
        with pytest.raises(specclient.AuthenticationError):
            door.create()
        assert not {"authorization", "x-team", "openai-organization"} & other.requests[0].headers.keys()


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_change_the_method_is_an_error(door: SyncDoor, status: int) -> None:
    door.server.play(raw(head(status, {"location": "https://elsewhere.example/", "content-length": "0"})))
    with pytest.raises(specclient.APIStatusError, match="correct base_url"):
        door.create()


def test_endless_redirects_end(door: SyncDoor) -> None:
    door.server.respond = lambda r: raw(head(307, {"location": r.target, "content-length": "0"}), keep=True)
    with pytest.raises(specclient.APIStatusError):
        door.create(max_retries=0)
    assert len(door.server.requests) < 10


def test_a_downgrade_to_http_counts_as_another_host() -> None:
    send = Send(
        "POST", "https://a.example/x", {"authorization": "secret", "content-type": "application/json"}
    )
    followed = redirected(send, 307, {"location": "http://a.example/x"})
    assert followed is not None
    assert followed.headers == {"content-type": "application/json"}


@pytest.mark.usefixtures("usual_authorities")
def test_certificates_are_checked_unless_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    context = Connect().ssl_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert caplog.text == ""
    assert Connect(verify=False).ssl_context().verify_mode == ssl.CERT_NONE
    assert "not verified" in caplog.text


@pytest.mark.usefixtures("usual_authorities")
def test_a_company_certificate_is_used(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import certifi

    end = "-----END CERTIFICATE-----"
    first = Path(certifi.where()).read_text().split(end)[0] + end + "\n"
    bundle = tmp_path / "company.pem"
    bundle.write_text(first)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    context = Connect().ssl_context()
    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert proxy_for("https://api.example/v1", None) == "http://proxy:3128"
    assert proxy_for("https://internal.example/v1", None) is None
    assert proxy_for("https://api.example/v1", "http://mine:1") == "http://mine:1"


def test_a_proxy_is_used(door: SyncDoor) -> None:
    door.make(base_url="http://api.example/v1", proxy=door.server.origin)
    door.server.play(reply(completion()))
    door.create()
    assert door.server.requests[0].target == "http://api.example/v1/chat/completions"


def test_responses_have_a_size_limit(door: SyncDoor) -> None:
    door.make(max_response_bytes=1000)
    door.server.play(reply(completion("x" * 2000)), reply(completion("x" * 100_000), gzip=True))
    for _ in range(2):
        with pytest.raises(specclient.APIResponseValidationError, match="larger than 1000 bytes"):
            door.create()


def test_an_endless_error_page_is_cut(door: SyncDoor) -> None:
    page = b"<html>" + b"x" * 3_000_000
    door.server.play(reply(page, 403))
    with pytest.raises(specclient.PermissionDeniedError) as caught:
        door.create()
    assert len(caught.value.response.content) <= 1024 * 1024
