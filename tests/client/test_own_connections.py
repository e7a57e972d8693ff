"""What others pass an HTTP client for: proxies, a company's certificates, a certificate of one's own."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import specclient
from tests.client.proxy import AUTH, Proxy
from tests.doors import SyncDoor
from tests.server import (
    DONE,
    Answer,
    ScriptedServer,
    chunk,
    completion,
    data,
    finish,
    raw,
    reply,
    sse,
    stream,
)

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates")


def ask(door: SyncDoor) -> None:
    door.server.play(reply(completion()), sse(chunk("Hel"), chunk("lo"), finish()))
    assert door.create().choices[0].message.content == "Hello"
    assert door.text() == "Hello"
    door.run(door.client.close())


# Proxies ------------------------------------------------------------------------------------------


def test_plain_http_through_a_proxy(door: SyncDoor, proxy: Proxy) -> None:
    door.make(proxy=proxy.url)
    ask(door)
    assert len(proxy.heads) == 1
    assert proxy.heads[0].startswith(b"POST http://127.0.0.1:")
    assert AUTH in proxy.heads[0]


def test_the_environments_proxy_and_its_exceptions(
    door: SyncDoor, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy.url)
    door.make()
    ask(door)
    assert len(proxy.heads) == 1
    door.make(proxy="")
    ask(door)
    assert len(proxy.heads) == 1, "an empty one: none, not even the environment's"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    door.make()
    ask(door)
    assert len(proxy.heads) == 1


def test_each_target_has_a_proxy_of_its_own(door: SyncDoor, proxy: Proxy, tmp_path: Path) -> None:
    """What mounts are for."""
    path = tmp_path / "specclient.toml"
    common = f'provider = "openai_compatible"\nbase_url = "{door.server.url}"\nmodel = "m"\n'
    path.write_text(f'[targets.a]\n{common}[targets.b]\n{common}proxy = "{proxy.url}"\n')
    for name, seen in (("a", 0), ("b", 1)):
        door.make(target=name, config=path)
        ask(door)
        assert len(proxy.heads) == seen


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("socks5://127.0.0.1:1", r"pip install 'httpcore\[socks\]'"),
        ("socks4://127.0.0.1:1", "cannot be used"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told(
    door: SyncDoor, monkeypatch: pytest.MonkeyPatch, variable: str, said: str
) -> None:
    monkeypatch.setattr("specclient.core.pools.find_spec", lambda _: None)
    monkeypatch.setenv("all_proxy", variable)
    with pytest.raises(specclient.ConfigError, match=said):
        door.create()


# Connections ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [reply(completion("first")), stream(data(chunk("first")), data(finish()), DONE)],
    ids=["reply", "stream"],
)
def test_an_answer_that_came_before_its_request_is_nobodys(
    door: SyncDoor, waits: list[float], first: Answer
) -> None:
    """It came in one read with the end of the answer before."""
    *steps, end = first.steps
    unasked = reply(completion("nobody's")).steps[0]
    assert isinstance(end, bytes)
    assert isinstance(unasked, bytes)
    door.server.play(raw(*steps, end + unasked, keep=True), *[reply(completion("second"))] * 2)
    if len(steps):
        assert door.text() == "first"
    else:
        assert door.create().choices[0].message.content == "first"
    answer = door.create()
    assert answer.choices[0].message.content == "second"
    assert [each.error for each in answer.specclient.attempts] == ["APIConnectionError", None]


def test_what_is_no_hosts_name_is_no_connection(door: SyncDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, *_: object, **__: object) -> None:
        host.encode("idna")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    door.make(base_url="http://a..b/v1")
    with pytest.raises(specclient.APIConnectionError, match="label"):
        door.create(max_retries=0)


# Certificates -------------------------------------------------------------------------------------


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority, with a server's and a client's certificate by it."""
    folder = tmp_path_factory.mktemp("ca")
    new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj")
    authority = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl(
        folder, *new, "/CN=Company", "-x509", "-days", "2", *authority, "-keyout", "ca.key", "-out", "ca.pem"
    )
    (folder / "names").write_text(
        "subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\nkeyUsage=digitalSignature\n"
    )
    for name in ("server", "client"):
        openssl(folder, *new, f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-days", "2", *signed, "-out", f"{name}.crt")
        whole = (folder / f"{name}.crt").read_text() + (folder / f"{name}.key").read_text()
        (folder / f"{name}.pem").write_text(whole)
    return folder


@pytest.fixture
def served(company: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(company / "server.pem")
    return context


@pytest.fixture
def secured(usual_authorities: None, door: SyncDoor, served: ssl.SSLContext) -> Iterator[SyncDoor]:
    """The door, to a server with the company's certificate."""
    with ScriptedServer(tls=served) as server:
        door.server = server
        yield door


@needs_openssl
@pytest.mark.parametrize("way", ["file", "context", "environment", "proxy"])
def test_a_companys_own_authority(
    secured: SyncDoor, company: Path, way: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(specclient.APIConnectionError, match="certificate"):
        secured.create(max_retries=0)
    bundle = str(company / "ca.pem")
    if way == "environment":
        monkeypatch.setenv("SPECCLIENT_VERIFY", bundle)
        monkeypatch.setenv("SPECCLIENT_PROVIDER", "openai_compatible")
        secured.make(config=None, base_url=secured.server.url, model="m", api_key="k")
    else:
        verify = ssl.create_default_context(cafile=bundle) if way == "context" else bundle
        secured.make(verify=verify, proxy=proxy.url if way == "proxy" else None)
    ask(secured)
    if way == "proxy":
        assert proxy.heads[0].startswith(b"CONNECT 127.0.0.1:")
        assert AUTH in proxy.heads[0]


@needs_openssl
def test_a_proxy_behind_tls_is_verified_like_a_server(
    secured: SyncDoor, company: Path, served: ssl.SSLContext
) -> None:
    proxy = Proxy(served)
    try:
        secured.make(proxy=proxy.url, max_retries=0, verify=ssl.create_default_context())
        with pytest.raises(specclient.APIConnectionError):
            secured.create()
        secured.make(proxy=proxy.url, verify=str(company / "ca.pem"))
        ask(secured)
    finally:
        proxy.close()
    assert [head[:8] for head in proxy.heads] == [b"CONNECT "]


@needs_openssl
def test_a_certificate_of_the_clients(door: SyncDoor, company: Path, served: ssl.SSLContext) -> None:
    served.load_verify_locations(company / "ca.pem")
    served.verify_mode = ssl.CERT_REQUIRED
    bundle = str(company / "ca.pem")
    with ScriptedServer(tls=served) as server:
        door.server = server
        door.make(verify=bundle)
        with pytest.raises(specclient.APIConnectionError):
            door.create(max_retries=0)
        door.make(verify=bundle, client_cert=str(company / "client.pem"))
        ask(door)


@pytest.mark.parametrize("field", ["verify", "client_cert"])
def test_a_file_without_certificates_is_named(door: SyncDoor, tmp_path: Path, field: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing")
    with pytest.raises(specclient.ConfigError, match=rf"^argument: {field} .*notes\.txt"):
        door.make(base_url="https://127.0.0.1:9", **{field: str(path)})


@needs_openssl
def test_no_password_of_a_key_is_asked_for(door: SyncDoor, company: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    openssl(
        tmp_path,
        "rsa",
        "-aes128",
        "-passout",
        "pass:x",
        "-in",
        str(company / "client.key"),
        "-out",
        str(locked),
    )
    path = tmp_path / "locked.pem"
    path.write_text((company / "client.crt").read_text() + locked.read_text())
    with pytest.raises(specclient.ConfigError, match=r"client_cert .*locked\.pem.*the key is encrypted"):
        door.make(client_cert=str(path))


def test_a_missing_bundle_is_told_at_once(door: SyncDoor) -> None:
    with pytest.raises(specclient.ConfigError, match=r"verify: there is no '/nowhere/ca.pem'"):
        door.make(verify="/nowhere/ca.pem")


def test_an_http_client_is_refused_with_what_does_the_same(door: SyncDoor) -> None:
    with pytest.raises(TypeError, match=r"proxy=, verify=, client_cert=, headers= and max_connections="):
        door.make(http_client=object())
