"""What a proposer wants to know of a token beyond its id: line breaks, words, brackets."""

from __future__ import annotations

from specclient_engine.api import Tokenizer

BREAK, WORD, SPACED, END = 1, 2, 4, 8


class Vocabulary:
    """Flags of tokens, read from the tokenizer once each: BREAK holds a line break, WORD is only letters,
    digits and underscores, SPACED begins with a space, END ends the answer."""

    __slots__ = ("_flags", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._flags: dict[int, int] = {}

    def flags(self, token: int) -> int:
        """The flags of a token; 0 for a separator (a negative id)."""
        flags = self._flags.get(token)
        if flags is None:
            flags = self._flags[token] = self._read(token)
        return flags

    def _read(self, token: int) -> int:
        if token < 0:
            return 0
        text = self._tokenizer.token_bytes(token).decode(errors="replace")
        bare = text.strip(" ")
        flags = BREAK if "\n" in text else 0
        if token in self._tokenizer.eos_ids:
            flags |= END
        if bare and all(c.isalnum() or c == "_" for c in bare):
            flags |= WORD
        if text.startswith(" "):
            flags |= SPACED
        return flags
