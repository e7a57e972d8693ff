"""HTTPS, against a server with a certificate of its own."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from time import perf_counter_ns

import httpcore
import pytest

import specclient
from specclient.core.pipe import Pipe
from tests.client.proxy import AUTH, Proxy
from tests.doors import SyncDoor
from tests.server import DONE, ScriptedServer, Stall, chunk, completion, data, finish, reply, sse, stream

pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate"),
    pytest.mark.usefixtures("usual_authorities"),
]


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


def test_through_a_proxy(door: SyncDoor, proxy: Proxy) -> None:
    door.make(verify=False, proxy=proxy.url)
    door.server.play(reply(completion()), sse(chunk("Hel"), chunk("lo"), finish()))
    assert door.create().choices[0].message.content == "Hello"
    assert door.text() == "Hello"
    door.run(door.client.close())
    assert len(proxy.heads) == 1
    assert proxy.heads[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"sk-sentinel" not in proxy.heads[0], "the key is for the server, not for the proxy"
    assert AUTH in proxy.heads[0]


# One connection by itself --------------------------------------------------------------------------


def against(
    certificate: Path, peer: Callable[[ssl.SSLSocket], None], ask: Callable[[Pipe], Awaitable[None]]
) -> None:
    """`ask` on an encrypted pipe whose other end is `peer`'s, in a thread of its own."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    ours = ssl.create_default_context(cafile=certificate / "cert.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with theirs.wrap_socket(listener.accept()[0], server_side=True) as other:
                peer(other)

        thread = threading.Thread(target=serve)
        thread.start()

        async def run() -> None:
            pipe = await Pipe.connect("127.0.0.1", listener.getsockname()[1], 5, None, ())
            try:
                await pipe.start_tls(ours, "127.0.0.1", 5)
                await ask(pipe)
            finally:
                await pipe.close()

        asyncio.run(run())
        thread.join()


def test_a_peer_that_does_not_read(certificate: Path) -> None:
    stay = threading.Event()

    async def ask(pipe: Pipe) -> None:
        with pytest.raises(httpcore.WriteTimeout):
            await pipe.write(b"x" * 32 * 2**20, 0.2)
        stay.set()

    against(certificate, lambda _: stay.wait(10) and None, ask)


def test_an_early_answer_to_what_is_still_being_sent(
    certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def peer(other: ssl.SSLSocket) -> None:
        other.recv(1)
        other.sendall(b"too large")
        time.sleep(0.2)  # a reset in the same moment may take the answer with it
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def ask(pipe: Pipe) -> None:
        with pytest.raises(httpcore.WriteError):
            await pipe.write(b"x" * 32 * 2**20, 10)
        assert await pipe.read(perf_counter_ns() + 5 * 10**9) == b"too large"

    against(certificate, peer, ask)
    assert "exception" not in caplog.text, "nothing was written to a connection that is lost"


@pytest.mark.parametrize("said", [True, False], ids=["said", "unsaid"])
def test_an_end_that_came_while_nobody_read(certificate: Path, said: bool) -> None:
    """The network is what is paused: what TLS holds back may be lost with the connection."""
    size = 8 * 2**20

    def peer(other: ssl.SSLSocket) -> None:
        other.sendall(b"x" * size)
        if said:
            other.unwrap().close()

    async def ask(pipe: Pipe) -> None:
        await asyncio.sleep(0.2)
        assert sum(map(len, pipe._pieces)) <= 2**20
        assert not pipe._base.is_reading()
        assert pipe._transport.is_reading()
        came = 0
        while data := await pipe.read(perf_counter_ns() + 5 * 10**9, 65536):
            came += len(data)
            await asyncio.sleep(0)
        assert came == size

    against(certificate, peer, ask)
