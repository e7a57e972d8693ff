"""Joins the HTTP chunks that arrived together into one. Pure.

A server sends each event of a stream as an HTTP chunk of its own, and what lies below us spends several
times longer on an HTTP chunk than we do on an event. Where chunks end has no meaning (RFC 9112 §7.1), so
those that came in one read are handed on as one, or their content is taken out here (`content`) and the
parser below sees the last chunk alone. Whatever is not plainly a well-formed chunk is passed on as it came,
to be judged by that parser.
"""

from __future__ import annotations

import re

_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_INTERIM = re.compile(rb"HTTP/1\.[01] 1\d\d ")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_LONGEST_HEAD = 100 * 1024
_LONGEST_SIZE_LINE = 1024

_HEAD, _BODY, _PASS = range(3)


def is_one_chunk(data: bytes, content: bytes) -> bool:
    """Whether `data` is one whole HTTP chunk, and holds `content`."""
    found = _SIZE.match(data)
    return (
        found is not None and int(found[1], 16) == len(content) and data[found.end() :] == content + b"\r\n"
    )


class ChunkJoiner:
    """The bytes of one response, read by read. `reset` before the next one on the same connection."""

    __slots__ = ("_data_end", "_held", "_left", "_state", "parsing", "rest")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A new response is about to begin."""
        self._state = _HEAD
        self._held = b""
        self._left = 0
        self._data_end = False  # the CRLF behind a chunk's data is still to come
        self.parsing = False
        """The parser below holds content that it has not given yet."""
        self.rest: bytes | None = None
        """What `take` left for the parser below: its next read."""

    def feed(self, data: bytes) -> bytes:
        """What to hand on for `data`; empty when it held nothing but the beginning of a size line."""
        if self._state == _BODY:
            joined = self._body(data)
        else:
            joined = data if self._state == _PASS else self._head(data)
        self.parsing = self._state == _BODY
        return joined

    def _head(self, data: bytes) -> bytes:
        before = len(self._held)
        whole = self._held + data
        end = whole.find(b"\r\n\r\n")
        if end < 0:
            self._held = whole
            if len(whole) > _LONGEST_HEAD:
                self._state = _PASS
            return data
        end += 4
        head, rest = whole[:end], whole[end:]
        self._held = b""
        if _INTERIM.match(head):
            return head[before:] + (self._head(rest) if rest else b"")
        if _CHUNKED.search(head) is None:
            self._state = _PASS
            return data
        self._state = _BODY
        return head[before:] + (self._body(rest) if rest else b"")

    @property
    def takes_content(self) -> bool:
        """Whether what comes next is a chunked body that `take` can read past the parser below."""
        return self._state == _BODY and not self.parsing and self.rest is None

    def take(self, data: bytes) -> bytes:
        """The content of one read (empty: the end of all); `rest` is set where the parser's turn has come."""
        if not (self._left or self._held or self._data_end):
            begin = data.find(b"\r\n", 0, 18) + 2
            size = len(data) - begin - 2
            if begin > 2 and size > 0 and data[: begin - 2].lower() == b"%x" % size and data[-2:] == b"\r\n":
                return data[begin:-2]  # exactly one chunk
        content, rest = self.content(data) if data else (b"", data)
        if rest or not data:
            self.rest = rest
        return content

    def content(self, data: bytes) -> tuple[bytes, bytes]:
        """A read of the body as (content, rest): `rest`, and what follows it, is for the parser below."""
        if self._held:
            data = self._held + data
            self._held = b""
        place, size = 0, len(data)
        pieces: list[bytes] = []
        rest = b""
        while place < size:
            if self._left:
                piece = data[place : place + self._left]
                pieces.append(piece)
                place += len(piece)
                self._left -= len(piece)
                self._data_end = not self._left
                continue
            if self._data_end:
                if size - place < 2:
                    break
                if data[place : place + 2] != b"\r\n":
                    rest = b"\r\n" + data[place:]  # no size line either: the fault stays one
                    break
                place += 2
                self._data_end = False
                continue
            found = _SIZE.match(data, place)
            if found is None:
                if size - place > _LONGEST_SIZE_LINE or b"\n" in data[place:]:
                    rest = data[place:]
                break
            self._left = int(found[1], 16)
            if not self._left:  # the last chunk
                rest = data[place:]
                break
            place = found.end()
        if rest:
            self._state = _PASS
        else:
            self._held = data[place:]
        return b"".join(pieces), rest

    def _body(self, data: bytes) -> bytes:
        content, rest = self.content(data)
        return (b"%x\r\n%b\r\n" % (len(content), content) if content else b"") + rest
