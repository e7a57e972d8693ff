"""Incremental server-sent events: bytes in, whole events out. Pure.

The format is the WHATWG one (https://html.spec.whatwg.org/multipage/server-sent-events.html): a line
ends at LF, CR or CRLF and nowhere else (U+2028 inside JSON is text), a line that starts with a colon is
a comment, several `data` lines of one event are joined by LF, an event without data is none, and one
byte order mark at the very start is dropped. An event whose data is empty is dropped too, since no JSON
is empty and gateways send such blocks to keep a connection open. Everything stays bytes until an event
is whole, so that no character is ever cut.
"""

from __future__ import annotations

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""No known API sends an event of this size; an endless line is an attack or a fault."""

Event = tuple[str, bytes]
"""(event name, data); the name is "" where none was given."""

_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """One event grew beyond the limit."""


class SSEReader:
    """Feed it blocks as they come; it returns the events that became whole.

    An event that is not closed by a blank line when the stream ends is not an event: `pending` tells
    whether bytes were left over.
    """

    __slots__ = ("_after_cr", "_data", "_held", "_limit", "_name", "_size", "_start")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._held: list[bytes] = []  # pieces of a line that has not ended; joined once, so linear
        self._size = 0
        self._data: list[bytes] = []
        self._name = ""
        self._after_cr = False
        self._start = True

    @property
    def pending(self) -> bool:
        """Whether an unfinished event or line is held."""
        return bool(self._held or self._data)

    @property
    def idle(self) -> bool:
        """Whether what comes next begins an event, whatever came before it."""
        return not (self._held or self._data or self._name or self._after_cr or self._start)

    @property
    def unfinished(self) -> bytes:
        """The data of an event that no blank line has closed yet: some servers end at `[DONE]`."""
        line = b"".join(self._held)
        data = [*self._data, line[5:]] if line.startswith(b"data:") else self._data
        return b"\n".join(data)

    def feed(self, block: bytes) -> list[Event]:
        """The events completed by `block`. Raises EventTooLarge."""
        if self._is_one_event(block):
            return [("", block[6:-2])]
        if self._start and not (block := self._without_bom(block)):
            return []
        if self._after_cr and block:
            self._after_cr = False
            if block[:1] == b"\n":
                block = block[1:]
        if b"\r" in block:
            self._after_cr = block[-1] == 13
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = block.split(b"\n")
        rest = lines.pop()
        if self._held and lines:
            lines[0] = b"".join((*self._held, lines[0]))
            self._held.clear()
            self._size = sum(map(len, self._data))
        events = self._take(lines)
        if rest:
            self._held.append(rest)
            self._grow(len(rest))
        return events

    def _is_one_event(self, block: bytes) -> bool:
        """By far the commonest block: one event of one data line, and nothing before it is pending."""
        size = len(block)
        return (
            block[:6] == b"data: "
            and 8 < size <= self._limit
            and block.find(b"\n") == size - 2
            and block[-1] == 10
            and self.idle
            and b"\r" not in block
        )

    def _without_bom(self, block: bytes) -> bytes:
        block = b"".join((*self._held, block))
        self._held.clear()
        if len(block) < 3 and _BOM.startswith(block):
            if block:
                self._held.append(block)
            return b""
        self._start = False
        return block.removeprefix(_BOM)

    def _take(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    if content := data[0] if len(data) == 1 else b"\n".join(data):
                        events.append((self._name, content))
                    data.clear()
                    self._size = 0
                self._name = ""
            elif line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._grow(len(line))
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
            elif line == b"data":
                data.append(b"")
        return events

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise EventTooLarge(f"one event of the stream is larger than {self._limit} bytes")
