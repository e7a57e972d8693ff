"""Events that are like one before them but for their text: most events of most streams.

What stands around the text was looked at once. A text without a quote ends where it seems to, so nothing
can hide in it.
"""

from __future__ import annotations

_TEXT = b'"content":"'
TRIES = 16
"""Events in a row that may be unlike any other: then each holds something of its own, and looking for what
they share only costs."""


class Alike:
    """The event that others are compared with, as it came and as it is shown."""

    __slots__ = ("_after", "_before", "_shown_after", "_shown_before", "_tries")

    def __init__(self) -> None:
        self._before = self._after = self._shown_before = self._shown_after = b""
        self._tries = TRIES

    def shown(self, raw: bytes) -> bytes | None:
        """What the SDK gets of an event like the one that was learnt; None for any other."""
        before, after = self._before, self._after
        begin, end = len(before), len(raw) - len(after)
        if not begin or end < begin or raw[:begin] != before or raw[end:] != after:
            return None
        text = raw[begin:end]
        if 0x22 in text or text[-1:] == b"\\":
            return None
        self._tries = TRIES
        if before is self._shown_before and after is self._shown_after:
            return raw
        return self._shown_before + text + self._shown_after

    def learn(self, raw: bytes, shown: bytes) -> None:
        """Take an event that holds nothing but text, and what the SDK gets of it."""
        if not self._tries:
            return
        self._tries -= 1
        before, after = _around(raw)
        if shown is raw:
            self._shown_before, self._shown_after = before, after
        else:
            self._shown_before, self._shown_after = _around(shown)
        self._before, self._after = before, after


def _around(raw: bytes) -> tuple[bytes, bytes]:
    """What stands before and behind the text of an event; nothing where that is not clear."""
    begin = raw.find(_TEXT) + len(_TEXT)
    end = raw.find(0x22, begin)
    if begin < len(_TEXT) or end < 0 or raw[end - 1] == 0x5C:
        return b"", b""
    return raw[:begin], raw[end:]
