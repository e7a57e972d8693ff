"""One attempt's answer, whatever carries it.

`read()` returns the next parsed JSON objects of the answer (an event that is like one before it but for its
text may come as an `alike.Piece`), an empty list for bytes that were no event (a keep-alive), `DONE` as an
element where the stream said that it is over, and None at its end. A plain
answer is one object. `HttpExchange` and its async twin share `Body`, which turns bytes into objects and
does no I/O; `local.py` has the exchange of the embedded engine.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic_core import from_json

from specclient.core.alike import Alike
from specclient.core.sse import SSEReader
from specclient.core.wire import Wire
from specclient.errors import APIConnectionError, APIResponseValidationError


class _Done:
    def __repr__(self) -> str:
        return "DONE"


DONE: Any = _Done()
"""What `read()` gives for `data: [DONE]`."""

ERROR_BODY_BYTES = 1024 * 1024
DRAIN_BYTES = 64 * 1024
READ_BYTES = 64 * 1024


class Exchange(Protocol):
    """An answer being read by a synchronous caller."""

    status: int
    headers: Mapping[str, str]
    wire: Wire
    stats: Any
    """The embedded engine's account at the end; None over HTTP."""

    def read(self) -> list[Any] | None: ...

    def read_text(self) -> str:
        """The whole body as text, cut at 1 MiB: for error pages."""
        ...

    def drain(self) -> None:
        """After [DONE]: read the rest for a moment, so that the connection can be used again, and close."""
        ...

    def close(self) -> None: ...


class AsyncExchange(Protocol):
    """An answer being read by an asynchronous caller."""

    status: int
    headers: Mapping[str, str]
    wire: Wire
    stats: Any

    async def read(self) -> list[Any] | None: ...

    async def read_text(self) -> str: ...

    async def drain(self) -> None: ...

    async def close(self) -> None: ...


class Body:
    """Bytes of a response -> JSON objects. `streamed` is what the caller asked for.

    A server may answer a streaming request with one JSON object (many do for errors): it is then given
    as it is. Raises APIResponseValidationError for anything that is no answer.
    """

    def __init__(self, headers: Mapping[str, str], *, streamed: bool, limit: int, wire: Wire) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._html = kind in ("text/html", "application/xhtml+xml")
        self._events = kind == "text/event-stream" or (
            streamed and not self._html and not kind.endswith("json")
        )
        self._streamed = streamed
        self._seen = False
        self._reader = SSEReader()
        self._alike = Alike()
        self._unpack = _decoder(headers.get("content-encoding", ""))
        self._pieces: list[bytes] = []
        self._left = limit
        self._limit = limit
        self.fault: APIResponseValidationError | None = None
        self._wire = wire
        if self._events and not streamed:
            raise APIResponseValidationError(
                "The endpoint answered a plain request with an event stream; ask with stream=True."
            )

    def feed(self, block: bytes) -> list[Any]:
        """The objects that `block` completes."""
        if self._unpack is not None:
            block = self._unpack(block, self._left + 1)
        self._left -= len(block)
        if self._left < 0:
            raise APIResponseValidationError(
                f"The answer is larger than {self._limit} bytes (max_response_bytes); reading was stopped."
            )
        if not self._events:
            self._pieces.append(block)
            if not block or block.isspace():
                return []
            if not self._is_stream_after_all():
                self._wire.touch()
                return []
            block, self._pieces = b"".join(self._pieces), []
        alike = self._alike
        if (piece := alike.event(block)) is not None and self._reader.idle:
            return [piece]
        try:
            events = self._reader.feed(block)
        except ValueError as error:
            raise APIResponseValidationError(f"The stream cannot be read: {error}.") from None
        objects: list[Any] = []
        for name, data in events:
            if not name and (piece := alike.piece(data)) is not None:
                objects.append(piece)
                continue
            try:
                value = from_json(data)
            except ValueError:
                try:
                    value = data.decode("utf-8", "replace") if name == "error" else _no_object(data)
                except APIResponseValidationError as error:
                    self.fault = error  # raised at the next read: what came before it is given first
                    return objects
            if name == "error" and not (isinstance(value, dict) and value.get("error")):
                value = {"error": value}
            if value is DONE or isinstance(value, dict):
                objects.append(value)
                if value is not DONE and not name:
                    alike.learn(data, value)
        return objects

    def _is_stream_after_all(self) -> bool:
        """Whether what is called JSON is an event stream: its first byte begins a field, and no JSON."""
        if self._streamed and not self._html and not self._seen:
            first = b"".join(self._pieces).lstrip(b" \r\n\t\xef\xbb\xbf")[:1]
            self._events = bool(first) and first in b"deir:"
        self._seen = True
        return self._events

    def end(self) -> list[Any]:
        """The objects that only the end of the body completes.

        A body that was cut off is a broken connection, which may be tried again.
        """
        if self._events:
            return [DONE] if self._reader.unfinished.strip() == b"[DONE]" else []
        content = b"".join(self._pieces)
        try:
            return [_without_list(_json(content))]
        except ValueError:
            unpacked = self._unpack is None or self._unpack.complete
            if content.strip() and not self._html and (not unpacked or _is_cut(content)):
                raise APIConnectionError(
                    f"The answer was cut off after {len(content)} bytes; its JSON has no end."
                ) from None
            raise APIResponseValidationError(_no_json(content, self._html)) from None

    def text(self) -> str:
        """What came of a plain body, decoded."""
        return b"".join(self._pieces).decode("utf-8", "replace")


class ErrorBody(Body):
    """The body of an error: text, cut at its limit, never an error by itself."""

    def __init__(self, headers: Mapping[str, str], wire: Wire) -> None:
        kinds = {"content-type": "text/plain", "content-encoding": headers.get("content-encoding", "")}
        self._readable = True
        try:
            super().__init__(kinds, streamed=False, limit=ERROR_BODY_BYTES, wire=wire)
        except APIResponseValidationError:  # an encoding that nobody asked for: the status says enough
            self._readable = False
            super().__init__({}, streamed=False, limit=ERROR_BODY_BYTES, wire=wire)

    def feed(self, block: bytes) -> list[Any]:
        """Keep what fits and can be read."""
        if self._unpack is not None:
            try:
                block = self._unpack(block, self._left + 1)
            except APIResponseValidationError:
                self._readable = False
        if not self._readable:
            return []
        self._pieces.append(block[: max(self._left, 0)])
        self._left -= len(block)
        return []

    @property
    def full(self) -> bool:
        return self._left <= 0


def _json(data: bytes) -> Any:
    """JSON by the fast reader, or by the standard one, which also takes half a surrogate pair and bare
    control characters. Raises ValueError."""
    try:
        return from_json(data)
    except ValueError:
        try:
            return json.loads(data, strict=False)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _is_cut(content: bytes) -> bool:
    """Whether JSON only lacks its end."""
    try:
        from_json(content)
    except ValueError as error:
        return str(error).startswith("EOF while parsing")
    return False


def _without_list(value: Any) -> Any:
    """An error that came in a list by itself, as Google's servers send it, as the object that it is."""
    alone = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
    return value[0] if alone and "error" in value[0] else value


def _no_object(data: bytes) -> Any:
    """What an event's data means that is not JSON."""
    data = data.strip()
    if data.startswith(b"[DONE]"):
        return DONE
    if data.startswith(b":"):  # a comment that a proxy wrapped into a data line
        return None
    try:
        return _json(data)
    except ValueError:
        size = len(data)
    raise APIResponseValidationError(f"The stream holds an event of {size} bytes that is not JSON.")


def _no_json(content: bytes, html: bool) -> str:
    if html or content.lstrip()[:1] == b"<":
        return "The endpoint answered with an HTML page instead of JSON; check base_url."
    if not content.strip():
        return "The endpoint answered with an empty body."
    return f"The endpoint answered with {len(content)} bytes that are not JSON."


def _decoder(encoding: str) -> Any:
    """A function (block, max_bytes) -> bytes for a content-encoding; None for identity."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return _Inflate(31)
    if name == "deflate":
        return _Inflate(15)
    raise APIResponseValidationError(
        f"The endpoint answered in content-encoding {name}, which was not asked for."
    )


class _Inflate:
    """Streaming gzip or zlib, never more than asked for at once: a small body may unpack to gigabytes."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._unpack = zlib.decompressobj(wbits)
        self._first = True

    @property
    def complete(self) -> bool:
        """Whether the end of the compressed body was seen."""
        return self._unpack.eof

    def __call__(self, block: bytes, limit: int) -> bytes:
        if not block:
            return b""
        if self._unpack.eof and block.startswith(b"\x1f"):  # another member, as RFC 1952 allows
            self._unpack = zlib.decompressobj(self._wbits)
        try:
            out = self._unpack.decompress(block, limit)
        except zlib.error:
            if self._first and self._wbits == 15:  # "deflate" without its zlib header, as some servers send
                self._unpack = zlib.decompressobj(-15)
                self._wbits = -15
                return self(block, limit)
            raise APIResponseValidationError("The answer's compressed body is damaged.") from None
        self._first = False
        following = self._unpack.unused_data if self._unpack.eof else b""
        return out + self(following, limit - len(out)) if following.startswith(b"\x1f") else out
