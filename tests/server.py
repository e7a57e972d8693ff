"""A scripted HTTP/1.1 server on loopback: it plays an exact sequence of bytes, waits and faults.

    with ScriptedServer() as server:
        server.play(sse(chunk("Hel"), chunk("lo"), finish()))
        client = specclient.Client(provider="openai_compatible", base_url=server.url, model="m", api_key="k")
        ...
        assert server.requests[0].json["messages"]

`play` queues one answer a request, in order; `server.respond = f` answers by a function of the request
instead. A request for which nothing is scripted gets a 599, so that a test cannot pass by accident.
An answer is a list of steps: bytes are written as they are, `Wait`, `Until`, `Stall` and `Close` act.
The server runs in threads, so that one script serves sync and async clients alike.
"""

from __future__ import annotations

import contextlib
import gzip as gzip_module
import itertools
import json
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Wait:
    """Send nothing for `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Until:
    """Send nothing until the event is set (or the server closes)."""

    event: threading.Event


@dataclass(frozen=True)
class Stall:
    """Send nothing more and keep the socket open until the client leaves or the server closes."""


@dataclass(frozen=True)
class Close:
    """Close the connection now; with `reset`, by RST instead of FIN."""

    reset: bool = False


Step = bytes | Wait | Until | Stall | Close


@dataclass(frozen=True)
class Answer:
    """The steps of one answer. `keep` leaves the connection open for the next request."""

    steps: tuple[Step, ...]
    keep: bool = True


@dataclass(frozen=True)
class Request:
    """What came: `connection` numbers the TCP connection it came on, from 0."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ScriptedServer:
    """See the module's docstring. `url` ends in /v1."""

    respond: Callable[[Request], Answer] | None = None
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    """Connections open right now."""
    tls: ssl.SSLContext | None = None
    """With a context the server speaks HTTPS."""
    left: int = 0
    """How often a client went away while an answer was being played."""

    def __post_init__(self) -> None:
        self._answers: list[Answer] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._hears_closing, self._tells_closing = socket.socketpair()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.origin = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/v1"
        self._start(self._accept)

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def play(self, *answers: Answer) -> None:
        """Queue answers, one a request."""
        with self._changed:
            self._answers.extend(answers)

    def wait_for(self, condition: Callable[[ScriptedServer], bool], seconds: float = 10.0) -> None:
        """Wait until `condition(server)` holds; AssertionError when it never does."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), seconds), "the server never saw it"

    def close(self) -> None:
        self._closing.set()
        self._tells_closing.close()  # wakes whoever waits for a client
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
        self._hears_closing.close()

    def _start(self, run: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=run, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                number = self.connections
                self.connections += 1
                self.open_connections += 1
                self._changed.notify_all()
            self._start(self._serve, peer, number)

    def _serve(self, peer: socket.socket, number: int) -> None:
        pending = b""
        try:
            with self._secured(peer) as peer:
                while not self._closing.is_set():
                    request, pending = self._read_request(peer, pending, number)
                    if request is None:
                        return
                    if not self._play(peer, self._answer_for(request)):
                        return
        except (BrokenPipeError, ConnectionResetError):
            self._count_left()
        except ssl.SSLError:
            pass  # the client did not like the certificate
        finally:
            with self._changed:
                self.open_connections -= 1
                self._changed.notify_all()

    def _secured(self, peer: socket.socket) -> socket.socket:
        if self.tls is None:
            return peer
        try:
            return self.tls.wrap_socket(peer, server_side=True)
        except OSError:
            peer.close()
            raise

    def _count_left(self) -> None:
        with self._changed:
            self.left += 1
            self._changed.notify_all()

    def _receive(self, peer: socket.socket) -> bytes:
        select.select([peer, self._hears_closing], [], [])
        if self._closing.is_set():
            return b""
        try:
            return peer.recv(65536)
        except ConnectionResetError:
            return b""

    def _read_request(self, peer: socket.socket, pending: bytes, number: int) -> tuple[Request | None, bytes]:
        while b"\r\n\r\n" not in pending:
            block = self._receive(peer)
            if not block:
                return None, b""
            pending += block
        head, _, body = pending.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            block = self._receive(peer)
            if not block:
                return None, b""
            body += block
        request = Request(method, target, headers, body[:length], number)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return request, body[length:]

    def _answer_for(self, request: Request) -> Answer:
        if self.respond is not None:
            return self.respond(request)
        with self._changed:
            if self._answers:
                return self._answers.pop(0)
        return error(599, "nothing is scripted for this request")

    def _play(self, peer: socket.socket, answer: Answer) -> bool:
        """Play the steps; False when the connection is over."""
        for step in answer.steps:
            if isinstance(step, bytes):
                peer.sendall(step)
            elif isinstance(step, Wait):
                if self._client_left(peer, time.monotonic() + step.seconds, None):
                    return False
            elif isinstance(step, Until):
                if self._client_left(peer, None, step.event):
                    return False
            elif isinstance(step, Stall):
                self._client_left(peer, None, None)
                return False
            else:
                if step.reset:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
        return answer.keep

    def _client_left(self, peer: socket.socket, until: float | None, event: threading.Event | None) -> bool:
        """Wait for a time or an event; True when the client went away first."""
        while not self._closing.is_set():
            if until is not None and time.monotonic() >= until:
                return False
            if event is not None and event.is_set():
                return False
            pause = None if until is None else max(0.0, until - time.monotonic())
            if event is not None:  # nothing wakes whoever waits for one of these
                pause = 0.01
            readable, _, _ = select.select([peer, self._hears_closing], [], [], pause)
            if peer in readable and not self._peek(peer):
                self._count_left()
                return True
        return True

    @staticmethod
    def _peek(peer: socket.socket) -> bytes:
        if isinstance(peer, ssl.SSLSocket):  # cannot be peeked into; whoever stalls waits for no request
            return b""
        try:
            return peer.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:
            return b""


def head(status: int, headers: dict[str, str], reason: str = "X") -> bytes:
    """Status line and headers, byte for byte."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1")


def raw(*steps: Step, keep: bool = False) -> Answer:
    """An answer of exactly these steps, head included."""
    return Answer(tuple(steps), keep)


def reply(
    body: object, status: int = 200, headers: dict[str, str] | None = None, *, gzip: bool = False
) -> Answer:
    """A whole answer with a content-length: JSON for any value but bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content-type": "text/html" if isinstance(body, bytes) else "application/json"}
    if gzip:
        content = gzip_module.compress(content)
        fields["content-encoding"] = "gzip"
    fields |= {"content-length": str(len(content))} | (headers or {})
    return Answer((head(status, fields) + content,))


def error(status: int, message: str, headers: dict[str, str] | None = None, **fields: object) -> Answer:
    """An OpenAI-shaped error."""
    detail = {"message": message, "type": "error", "param": None, "code": None} | fields
    return reply({"error": detail}, status, headers)


def stream(
    *pieces: Step,
    headers: dict[str, str] | None = None,
    framing: str = "chunked",
    gzip: bool = False,
    terminate: bool = True,
) -> Answer:
    """An event stream: each bytes piece is one write (and one HTTP chunk).

    `framing` is "chunked" or "close"; without `terminate` a chunked body has no last chunk.
    """
    fields = {"content-type": "text/event-stream"}
    fields |= {"transfer-encoding": "chunked"} if framing == "chunked" else {"connection": "close"}
    if gzip:
        fields["content-encoding"] = "gzip"
        pieces = tuple(_gzipped(pieces))
    steps: list[Step] = [head(200, fields | (headers or {}))]
    for piece in pieces:
        if isinstance(piece, bytes) and framing == "chunked":
            steps.append(b"%x\r\n%b\r\n" % (len(piece), piece))
        else:
            steps.append(piece)
    if framing == "chunked" and terminate:
        steps.append(b"0\r\n\r\n")
    return Answer(tuple(steps), keep=framing == "chunked" and terminate)


def _gzipped(pieces: Iterable[Step]) -> Iterable[Step]:
    import zlib

    packer = zlib.compressobj(wbits=31)
    for piece in pieces:
        if isinstance(piece, bytes):
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
        else:
            yield piece
    yield packer.flush()


DONE = b"data: [DONE]\n\n"


def data(value: object) -> bytes:
    """One event whose data is the value's JSON."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def sse(*events: object, done: bool = True, **options: Any) -> Answer:
    """A stream of JSON events (dicts) and raw steps, closed by [DONE] unless told otherwise."""
    pieces: list[Step] = [data(event) if isinstance(event, dict) else event for event in events]  # type: ignore[misc]
    return stream(*pieces, *([DONE] if done else []), **options)


def split(content: bytes, at: Sequence[int]) -> list[bytes]:
    """`content` cut at the given positions."""
    edges = [0, *at, len(content)]
    return [content[start:end] for start, end in itertools.pairwise(edges) if start < end]


def completion(
    text: str = "Hello", *, model: str = "m", usage: dict[str, Any] | None = None, **extra: Any
) -> Any:
    """A chat completion as a dict."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": usage or {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        **extra,
    }


def chunk(content: str | None = None, *, finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chat completion chunk as a dict."""
    fields = delta if content is None else {"content": content, **delta}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}],
    }


def role() -> dict[str, Any]:
    """The empty frame that many servers send first."""
    return chunk("", role="assistant")


def finish(reason: str = "stop") -> dict[str, Any]:
    """The chunk that carries the finish reason."""
    return chunk(finish_reason=reason)


def usage_chunk(**usage: Any) -> dict[str, Any]:
    """The chunk without choices that carries the usage."""
    counts = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7} | usage
    return chunk() | {"choices": [], "usage": counts}
