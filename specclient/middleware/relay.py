"""A stream of events on its way to the SDK: every byte passes as it came, the report rides in the last one.

An event is passed on as soon as it is whole (the SDK could do nothing with half a one). Only an event
that may be the last with an object in it (it carries a finish reason, or the usage) waits for the next
event or the end of the stream, so that the report can be written into it. Content waits only where it
shares an event with the finish reason.
"""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from specclient.core.sse import MAX_EVENT_BYTES
from specclient.middleware.context import KEY
from specclient.middleware.gateway_report import set_aside

_EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
"""A line's end and an empty line. Atomic, so that one CRLF is never taken for two line ends."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LAST = b"[DONE]"
_OBJECT = (b"data: {", b"data:{")


class Listener(Protocol):
    """The call that the stream belongs to."""

    def plain_content(self, raw: bytes) -> bytes | None:
        """What the SDK gets of an event that surely holds nothing but more content; None: read it."""
        ...

    def event(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """Take note of one event; gives back what the SDK may see of it: itself, another, or nothing.

        Raises AskAgain."""
        ...

    def unreadable(self) -> None:
        """An event that is no JSON object passed."""
        ...

    def completed(self) -> bytes | None:
        """The stream said that it is over. The report as JSON, or None when there is none to add."""
        ...

    def ran_out(self) -> bytes | None:
        """The stream ended without saying so. The report as JSON, or None when there is none to add."""
        ...

    def failed(self, error: BaseException) -> None: ...
    def closed(self) -> None: ...


class AskAgain(Exception):
    """Raised by a listener at the first event: it refuses what was added to the request, which is to be sent
    again without it. `event` is that event as it came."""

    event = b""


class EventRelay:
    """Blocks in, blocks out. `drained` turns True at `[DONE]`."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._rest: list[bytes] = []  # pieces of an event that has not ended; joined once, so linear
        self._size = 0
        self._has_cr = False
        self._held: bytes | None = None
        self._deaf = False
        self.drained = False

    def feed(self, block: bytes) -> bytes:
        """What may pass now: whole events in order, changed only where they held what was not asked for."""
        if self._deaf or not block:
            return block
        if self._held is None and not self._rest and _is_one_object(block) and not self.drained:
            plain = self._listener.plain_content(block)
            if plain is not None:
                return plain
        end_of_event = _end_of_event if self._has_cr or 13 in block else _end_of_lf_event
        if self._rest:
            # Only where the new block meets the old ones can an event end that did not end before.
            seam = self._rest[-1][-3:] + block
            self._rest.append(block)
            if not end_of_event(seam, 0):
                return self._waiting(block)
            block = b"".join(self._rest)
        passing: list[bytes] = []
        begin = 0
        while (end := end_of_event(block, begin)) > 0:
            self._take(block[begin:end], passing)
            begin = end
        rest = block[begin:]
        self._rest, self._size, self._has_cr = [], 0, False
        out = passing[0] if len(passing) == 1 else b"".join(passing)
        if rest:
            self._rest.append(rest)
            out += self._waiting(rest)
        return out

    def _waiting(self, piece: bytes) -> bytes:
        """One more piece of an event that has not ended; what passes when it is one too many."""
        self._size += len(piece)
        self._has_cr = self._has_cr or 13 in piece
        if self._size <= MAX_EVENT_BYTES:
            return b""
        # An endless line: the SDK gets what it would have got without us, and we stop reading along.
        self._deaf = True
        passing: list[bytes] = []
        self._release(passing)
        passing += self._rest
        self._rest = []
        return b"".join(passing)

    def end(self) -> bytes:
        """The body is over: what was held, and what was left of an event that never became whole."""
        passing: list[bytes] = []
        rest, self._rest = b"".join(self._rest), []
        if not self.drained and data_of(rest) == _LAST:  # without the empty line that ends an event
            self._take(rest, passing)
            return b"".join(passing)
        if not self.drained:
            self._release(passing, self._listener.ran_out())
        passing.append(rest)
        return b"".join(passing)

    def failed(self, error: BaseException) -> bytes:
        """The body broke off; what passes before the SDK hears of it."""
        self._listener.failed(error)
        passing: list[bytes] = []
        self._release(passing)
        rest, self._rest = self._rest, []
        return b"".join((*passing, *rest))

    def closed(self) -> None:
        self._listener.closed()

    def _take(self, raw: bytes, passing: list[bytes]) -> None:
        if self._held is None and raw.startswith(_OBJECT) and not self.drained:
            plain = self._listener.plain_content(raw)
            if plain is not None:
                passing.append(plain)
                return
        data = data_of(raw)
        if not data or self.drained:
            if b"data:" in raw:  # some SDKs stumble over empty data, and must have got what came before
                self._release(passing)
            passing.append(raw)
        elif data.startswith(_LAST):
            self.drained = True
            self._release(passing, self._listener.completed())
            passing.append(raw)
        else:
            self._object(raw, data, passing)

    def _object(self, raw: bytes, data: bytes, passing: list[bytes]) -> None:
        value = parsed(data)
        if not isinstance(value, dict):
            self._listener.unreadable()
            self._release(passing)
            passing.append(raw)
            return
        try:
            shown = self._listener.event(value)
        except AskAgain as again:
            again.event = raw
            raise
        if shown is None:
            return
        self._release(passing)
        if shown is not value:
            raw = as_event(shown)
        if KEY in shown:
            raw = set_aside(raw, shown, as_event)
        if may_be_last(shown):
            self._held = raw
        else:
            passing.append(raw)

    def _release(self, passing: list[bytes], report: bytes | None = None) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            passing.append(held if report is None else spliced(held, report, _end_of_object(held)))


def _is_one_object(block: bytes) -> bool:
    """Whether one event with an object begins and ends with the block, as nearly all do.

    Slices and numbers: methods, and bytes before `in`, cost several times as much.
    """
    return block[:7] == b"data: {" and block[-2:] == b"\n\n" and 10 not in block[:-2] and 13 not in block


def _end_of_event(buffer: bytes, start: int) -> int:
    """Where the event that runs on from `start` ends; 0 when it does not end yet."""
    found = _EVENT_END.search(buffer, start)
    return 0 if found is None else found.end()


def _end_of_lf_event(buffer: bytes, start: int) -> int:
    """The same where no line ends in CR: ten times as fast."""
    found = buffer.find(b"\n\n", start)
    return 0 if found < 0 else found + 2


def data_of(raw: bytes) -> bytes:
    """The data of one event, its lines joined; empty for comments and for events without data."""
    body = raw.strip(b"\r\n")
    if body.startswith(b"data:") and b"\n" not in body and b"\r" not in body:
        return body[5:].strip()
    lines = _LINE_END.split(body.removeprefix(_BOM))
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))


def may_be_last(event: dict[str, Any]) -> bool:
    """Whether no content is expected after this event: it has a finish reason, or the usage alone."""
    choices = event.get("choices")
    if not isinstance(choices, list) or not choices:
        return event.get("usage") is not None
    return any(isinstance(choice, dict) and choice.get("finish_reason") is not None for choice in choices)


def spliced(raw: bytes, report: bytes, at: int | None = None) -> bytes:
    """The object that ends at `at` with the report as one more key; every other byte stays as it is.

    Without `at`, it ends at the last brace of `raw`.
    """
    at = raw.rfind(b"}") if at is None else at
    before = raw[:at]
    comma = b"" if before.rstrip().endswith(b"{") else b","
    return b'%b%b"specclient":%b%b' % (before, comma, report, raw[at:])


def _end_of_object(event: bytes) -> int:
    """The last brace in an event's data: other lines, such as comments, may have braces behind it."""
    at = event.rfind(b"}")
    while not event.startswith((b"data:", _BOM), _begin_of_line(event, at)):
        at = event.rfind(b"}", 0, at)
    return at


def _begin_of_line(event: bytes, at: int) -> int:
    return max(event.rfind(b"\n", 0, at), event.rfind(b"\r", 0, at)) + 1


def parsed(data: bytes) -> Any:
    """What JSON says, as leniently as the SDKs read it; None for what is no JSON."""
    try:
        return from_json(data)
    except ValueError:  # also for half a surrogate pair, and other encodings than UTF-8
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None


def as_event(value: object) -> bytes:
    """An object as an event of its own."""
    return b"data: " + compact(value) + b"\n\n"


def compact(value: object) -> bytes:
    """JSON as the SDKs write it."""
    try:
        return to_json(value)
    except ValueError:  # half a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()
