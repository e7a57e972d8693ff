"""The events of a stream that are alike but for their text. Pure.

A server writes event after event with the same bytes around another piece of text. Once one was read in
full (`learn`), those that begin and end with the same bytes have the same meaning but for the text between,
so that two comparisons and one short string take the place of reading all of it again. An event that
differs in anything else is not alike, and is read in full.

OpenAI pads every event with a second string, `obfuscation`: it may differ too.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json

Piece = tuple[dict[str, Any], str, str | None]
"""An event in short: one that was alike (not to be changed), this one's text, its padding if it has one."""

PADDING = "obfuscation"
PLAIN_KEYS = frozenset(
    {
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "system_fingerprint",
        "service_tier",
        PADDING,
    }
)
"""What an event may have at its top without telling anything of the whole call."""
_STRING = rb'\s*:\s*"((?:[^"\\]|\\.)*)"'
_CONTENT = re.compile(rb'"content"' + _STRING)
_PADDED = re.compile(rb'"obfuscation"' + _STRING)
LEAF = (str, int, float, type(None))  # bool is an int
"""What two objects may share: nobody can change it."""
_VAIN = 4
_FIELD = b"data: "


class Alike:
    """What the events of one stream have in common. It gives up on one whose events never are alike."""

    __slots__ = ("_first", "_last", "_vain", "before", "behind", "between", "like")

    def __init__(self) -> None:
        self.before = self.behind = self.between = self._first = self._last = b""
        self.like: dict[str, Any] | None = None
        self._vain = 0  # how often in a row what was learnt was of no use

    def event(self, block: bytes) -> Piece | None:
        """The only event of a block, one data line and the blank line behind it, where it is alike."""
        if self.like is not None and block.startswith(self._first) and block.endswith(self._last):
            return self.piece(block[6:-2])
        return None

    def piece(self, data: bytes) -> Piece | None:
        """An event's data in short; None where they are not alike and have to be read."""
        like = self.like
        if like is None or not (data.startswith(self.before) and data.endswith(self.behind)):
            return None
        text = data[len(self.before) : -len(self.behind)]
        padding = None
        try:
            if self.between:
                text, _, behind = text.partition(self.between)
                padding = string(behind)
            content = string(text)
        except ValueError:
            return None
        self._vain = 0
        return (like, content, padding) if content else None

    def learn(self, data: bytes, event: dict[str, Any]) -> None:
        """Take an event that had to be read as what the next ones may be like."""
        if self._vain >= _VAIN or not is_text(event):
            return
        self._vain += 1
        self.like = None
        found = _CONTENT.search(data)
        if found is None or b"\n" in data:
            return
        padded = _PADDED.search(data, found.end()) if PADDING in event else None
        before, end = data[: found.start(1)], found.end(1)
        between = data[end : padded.start(1)] if padded else b""
        behind = data[padded.end(1) if padded else end :]
        # The strings that were found are the right ones if others in their place come out where they should.
        other = b"%bA%b%b" % (before, between + b"B" if padded else b"", behind)
        try:
            proven = from_json(other) == filled((event, "A", "B" if padded else None))
        except ValueError:
            return
        if proven:
            self.before, self.between, self.behind = before, between, behind
            self._first, self._last = _FIELD + before, behind + b"\n\n"
            self.like = filled((event, event["choices"][0]["delta"]["content"], event.get(PADDING)))


def string(written: bytes) -> str:
    """What is between the quotes of a JSON string. Raises ValueError where it is anything else."""
    plain = written.decode()
    if '"' not in plain and "\\" not in plain and plain.isprintable():
        return plain
    string: str = from_json(b'"%b"' % written)  # no JSON unless it is exactly one string
    return string


def is_text(event: dict[str, Any]) -> bool:
    """Whether an event holds some text of the first choice, and nothing that has parts or ends anything."""
    choices = event.get("choices")
    if not event.keys() <= PLAIN_KEYS or event.get("usage"):
        return False
    if type(choices) is not list or len(choices) != 1 or type(choice := choices[0]) is not dict:
        return False
    delta = choice.get("delta")
    if type(delta) is not dict or type(content := delta.get("content")) is not str or not content:
        return False
    if choice.get("finish_reason") or choice.get("index") or "error" in choice:
        return False
    return _flat(event, "choices") and _flat(choice, "delta") and _flat(delta)


def _flat(node: dict[str, Any], but: str | None = None) -> bool:
    return all(isinstance(value, LEAF) for key, value in node.items() if key != but)


def filled(piece: Piece) -> dict[str, Any]:
    """The event that a piece stands for, all its own."""
    like, text, padding = piece
    choice = like["choices"][0]
    event = {**like, "choices": [{**choice, "delta": {**choice["delta"], "content": text}}]}
    if padding is not None:
        event[PADDING] = padding
    return event
