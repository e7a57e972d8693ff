"""From token ids to text as it may be shown: whole characters, and nothing of a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from specclient_engine.api import Tokenizer

_LONGEST_CHARACTER = 4


class TextStream:
    """The growing text of one answer.

    A character whose bytes are not all there is held back; so is a tail that could become one of the
    `stop` strings. `finish` gives what was held. When the prompt ends inside a character, the answer
    begins with that character, whole.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_ids: Sequence[int], stop: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._stop = tuple(text for text in stop if text)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoder.decode(_open_character(tokenizer, prompt_ids))
        self._held = ""
        self._ready: list[str] = []
        self.stopped = False
        """Whether a stop string is complete; nothing may be pushed after it."""

    def push(self, token_id: int) -> None:
        """Adds one token."""
        self._add(self._decoder.decode(self._tokenizer.token_bytes(token_id)))

    def take(self) -> str:
        """What may be shown and was not taken before."""
        text = "".join(self._ready)
        self._ready.clear()
        return text

    def finish(self) -> str:
        """The rest, at the end of the answer: an unfinished character becomes U+FFFD."""
        if not self.stopped:
            self._add(self._decoder.decode(b"", final=True))
        if not self.stopped:
            self._ready.append(self._held)
            self._held = ""
        return self.take()

    def _add(self, text: str) -> None:
        if not text:
            return
        if not self._stop:
            self._ready.append(text)
            return
        text = self._held + text
        found = [at for at in (text.find(stop) for stop in self._stop) if at >= 0]
        if found:
            self._ready.append(text[: min(found)])
            self._held = ""
            self.stopped = True
            return
        shown = len(text) - _longest_start(text, self._stop)
        self._ready.append(text[:shown])
        self._held = text[shown:]


def _longest_start(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of `text` that is the start of a stop string."""
    longest = max(len(stop) for stop in stops) - 1
    for length in range(min(longest, len(text)), 0, -1):
        tail = text[-length:]
        if any(stop.startswith(tail) for stop in stops):
            return length
    return 0


def _open_character(tokenizer: Tokenizer, ids: Sequence[int]) -> bytes:
    """The bytes of a character that `ids` begin and do not end."""
    tail = b"".join(tokenizer.token_bytes(token) for token in ids[-_LONGEST_CHARACTER:])
    for length in range(1, min(_LONGEST_CHARACTER, len(tail) + 1)):
        lead = tail[-length]
        if lead < 0x80:
            return b""
        if lead >= 0xC0:
            needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return tail[-length:] if length < needed else b""
    return b""
