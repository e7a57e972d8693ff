"""A proxy on loopback, as companies have them."""

from __future__ import annotations

import base64
import select
import socket
import ssl
import threading
from contextlib import suppress
from urllib.parse import urlsplit

AUTH = b"Proxy-Authorization: Basic " + base64.b64encode(b"user:pass@word")
"""What a client of `Proxy` shows it."""


class Proxy:
    """CONNECT for https, whole addresses for http, one connection at a time."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.heads: list[bytes] = []
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://user:pass%40word@127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with suppress(OSError), self._secured(peer) as peer:
                self._serve(peer)

    def _secured(self, peer: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(peer, server_side=True) if self._tls else peer

    def _serve(self, peer: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            block = peer.recv(1)
            if not block:
                return
            head += block
        self.heads.append(head)
        method, target, _ = head.split(b" ", 2)
        where = urlsplit(f"//{target.decode()}" if method == b"CONNECT" else target.decode())
        with socket.create_connection((where.hostname, where.port)) as server:
            if method == b"CONNECT":
                peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server.sendall(head)
            self._relay(peer, server)

    @staticmethod
    def _relay(peer: socket.socket, server: socket.socket) -> None:
        other = {peer: server, server: peer}
        while True:
            waiting = isinstance(peer, ssl.SSLSocket) and peer.pending()
            for side in [peer] if waiting else select.select([peer, server], [], [], 10)[0]:
                data = side.recv(65536)
                if not data:
                    return
                other[side].sendall(data)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
