"""Bytes of a response -> the JSON objects in it. No I/O; the exchanges over HTTP share it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import from_json

from specclient.core.alike import Alike, Piece
from specclient.core.encodings import decoder
from specclient.core.exchange import DONE
from specclient.core.lone import Lone
from specclient.core.sse import SSEReader
from specclient.core.wire import Wire
from specclient.errors import APIConnectionError, APIResponseValidationError

ERROR_BODY_BYTES = 1024 * 1024


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
        self._unpack = decoder(headers.get("content-encoding", ""))
        self._pieces: list[bytes] = []
        self._lone = Lone(self._alike, limit)
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
            block = self._unpack(block, self._lone.left + 1)
        self._lone.left -= len(block)
        if self._lone.left < 0:
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

    def lone(self, data: bytes, block: bytes, objects: list[Any]) -> Callable[[bytes], Piece | None] | None:
        """What knows a read that is like `data`, which was an HTTP chunk of `block`, which gave `objects`.

        None where nothing can: only `feed` may read what comes.
        """
        if len(objects) != 1 or type(objects[0]) is not tuple or self._unpack is not None:
            return None
        if not self._reader.idle or not self._lone.learn(data, block, objects[0]):
            return None
        return self._lone.piece

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
                block = self._unpack(block, self._lone.left + 1)
            except APIResponseValidationError:
                self._readable = False
        if not self._readable:
            return []
        self._pieces.append(block[: max(self._lone.left, 0)])
        self._lone.left -= len(block)
        return []

    @property
    def full(self) -> bool:
        return self._lone.left <= 0


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
