"""A read that holds one HTTP chunk with one event in it, alike but for its text to one before. Pure.

Many servers send a token as soon as they have it, so that each read brings one event. All that stands
around its text, the size of the HTTP chunk too, then says what it said when it was last read in full: a
dictionary and two comparisons tell. What differs in anything else is not known here, and is read in full.
"""

from __future__ import annotations

from typing import Any

from specclient.core.alike import Alike, Piece, string
from specclient.core.chunked import is_one_chunk

_MOST_SIZES = 64
"""Sizes of reads that are known at once: pieces of text are a word long, most of them."""


class Lone:
    """What the lone events of one stream look like. `left` is how many bytes its body may still have."""

    __slots__ = ("_alike", "_between", "_heads", "_like", "_tail", "left")

    def __init__(self, alike: Alike, limit: int) -> None:
        self.left = limit
        self._alike = alike
        self._like: dict[str, Any] = {}
        self._between = self._tail = b""
        self._heads: dict[int, tuple[bytes, int, int]] = {}  # head, size of the text, size of the content

    def piece(self, data: bytes) -> Piece | None:
        """The event of a read that begins where an HTTP chunk and an event begin; None: not known."""
        known = self._heads.get(len(data))
        if known is None:
            return None
        head, text_size, size = known
        text = data.removeprefix(head).removesuffix(self._tail)
        if len(text) != text_size or size > self.left:
            return None
        padding = None
        try:
            if self._between:
                text, _, behind = text.partition(self._between)
                padding = string(behind)
            content = text.decode()
            if '"' in content or "\\" in content or not content.isprintable():
                content = string(text)
        except ValueError:
            return None
        if not content:
            return None
        self.left -= size
        return self._like, content, padding

    def learn(self, data: bytes, block: bytes, piece: Piece) -> bool:
        """Whether the next read may be like `data`, an HTTP chunk of `block`, which was `piece` alone."""
        alike, size = self._alike, len(data)
        if piece[0] is not alike.like or not is_one_chunk(data, block):
            return False
        begin, end = data.find(alike.before) + len(alike.before), data.rfind(alike.behind)
        if piece[0] is not self._like or data[end:] != self._tail:
            self._like, self._between, self._tail = piece[0], alike.between, data[end:]
            self._heads.clear()
        if size not in self._heads and len(self._heads) < _MOST_SIZES:
            left = self.left
            self._heads[size] = data[:begin], end - begin, len(block)
            if self.piece(data) != piece:
                del self._heads[size]
            self.left = left
        return bool(self._heads)
