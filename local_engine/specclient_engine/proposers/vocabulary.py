"""What a proposer wants to know of a token beyond its id: line breaks, words, brackets."""

from __future__ import annotations

import re

from specclient_engine.api import Tokenizer

BREAK, WORD, SPACED, END, OPEN, BLANK = 1, 2, 4, 8, 16, 32
STRETCHES = re.compile(rb"\w+|\W+")
INDENTS = re.compile(rb"\n[ \t\n]*")
FACTOR, MASK = 1_000_003, (1 << 60) - 1

Stretch = tuple[bool, int, int]
"""Letters, digits and underscores (True) or anything else (False) of a token's text, as a step of a hash h of
characters: h * the second + the third. However a text is split into tokens, its hash is the same."""


class Vocabulary:
    """Flags of tokens, read from the tokenizer once each: BREAK holds a line break, WORD is only letters,
    digits and underscores, SPACED begins with a space, END ends the answer, OPEN ends with a line break (the
    next line's indent, if any, is yet to come), BLANK is spaces and tabs alone."""

    __slots__ = ("_flags", "_stretches", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._flags: dict[int, int] = {}
        self._stretches: dict[int, tuple[Stretch, ...]] = {}

    def flags(self, token: int) -> int:
        """The flags of a token; 0 for a separator (a negative id)."""
        flags = self._flags.get(token)
        if flags is None:
            flags = self._flags[token] = self._read(token)
        return flags

    def stretches(self, token: int) -> tuple[Stretch, ...]:
        """The stretches of a token's text, in order; indents count for nothing."""
        stretches = self._stretches.get(token)
        if stretches is None:
            text = self._tokenizer.token_bytes(token) if token >= 0 else b"\n"
            found = tuple(_stretch(match.group()) for match in STRETCHES.finditer(text))
            stretches = self._stretches[token] = found
        return stretches

    def _read(self, token: int) -> int:
        if token < 0:
            return 0
        text = self._tokenizer.token_bytes(token).decode(errors="replace")
        bare = text.strip(" ")
        flags = BREAK if "\n" in text else 0
        if text.endswith("\n"):
            flags |= OPEN
        if text and not text.strip(" \t"):
            flags |= BLANK
        if token in self._tokenizer.eos_ids:
            flags |= END
        if bare and all(c.isalnum() or c == "_" for c in bare):
            flags |= WORD
        if text.startswith(" "):
            flags |= SPACED
        return flags


def _stretch(text: bytes) -> Stretch:
    factor, term = 1, 0
    for byte in INDENTS.sub(b"\n", text):
        factor = factor * FACTOR & MASK
        term = (term * FACTOR + byte + 1) & MASK
    return text[:1].isalnum() or text[:1] == b"_", factor, term
