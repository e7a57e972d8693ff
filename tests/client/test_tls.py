"""HTTPS, against a server with a certificate of its own."""

from __future__ import annotations

import base64
import select
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import specclient
from tests.doors import SyncDoor
from tests.server import DONE, ScriptedServer, Stall, chunk, completion, data, finish, reply, sse, stream

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def server(certificate: Path) -> Iterator[ScriptedServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with ScriptedServer(tls=context) as running:
        yield running


def test_an_unknown_certificate_is_refused(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(reply(completion()))
    with pytest.raises(specclient.APIConnectionError, match="certificate"):
        door.create()
    assert door.server.requests == []


def test_a_company_certificate_is_trusted(
    door: SyncDoor, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    door.server.play(reply(completion()), sse(chunk("Hel"), chunk("lo"), finish()), reply(completion()))
    assert door.create().choices[0].message.content == "Hello"
    assert door.text() == "Hello"
    report = door.create().specclient
    assert report.timing.client.connect is None, "the connection was used again"
    assert {r.connection for r in door.server.requests} == {0}


def test_verification_is_off_only_when_asked_for(door: SyncDoor, caplog: pytest.LogCaptureFixture) -> None:
    door.make(verify=False)
    door.server.play(reply(completion()))
    assert door.create().choices[0].message.content == "Hello"
    assert "not verified" in caplog.text


def test_a_stall_over_tls(door: SyncDoor) -> None:
    door.make(verify=False)
    door.server.play(stream(data(chunk("Hel")), Stall()), stream(data(chunk("Hello")), data(finish()), DONE))
    with pytest.raises(specclient.APITimeoutError) as caught:
        door.read(timeout=specclient.Timeout(content_idle=0.3))
    assert (caught.value.limit, caught.value.partial) == ("content_idle", "Hel")
    assert door.text() == "Hello"


class Tunnel:
    """A proxy that does CONNECT, once at a time."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://user:pass%40word@127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                with peer:
                    self._relay(peer)

    def _relay(self, peer: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += peer.recv(1)
        self.heads.append(head)
        host, _, port = head.split()[1].decode().partition(":")
        with socket.create_connection((host, int(port))) as server:
            peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            other = {peer: server, server: peer}
            while True:
                for side in select.select([peer, server], [], [], 10)[0]:
                    data = side.recv(65536)
                    if not data:
                        return
                    other[side].sendall(data)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


def test_through_a_tunnel(door: SyncDoor) -> None:
    tunnel = Tunnel()
    try:
        door.make(verify=False, proxy=tunnel.url)
        door.server.play(reply(completion()), sse(chunk("Hel"), chunk("lo"), finish()))
        assert door.create().choices[0].message.content == "Hello"
        assert door.text() == "Hello"
        door.run(door.client.close())
    finally:
        tunnel.close()
    assert len(tunnel.heads) == 1
    assert tunnel.heads[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"sk-sentinel" not in tunnel.heads[0], "the key is for the server, not for the proxy"
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:pass@word") in tunnel.heads[0]
