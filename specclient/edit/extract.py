"""The file's text out of a model's answer.

Models are told to answer with the file alone. Many wrap it in a code fence all the same, some greet first,
some explain afterwards, some think aloud. Whatever is taken off here is told to the caller; what the file
itself holds (its own fences, its own first line) is never taken for a wrapper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from specclient.edit.prose import greets, is_prose, is_sentence, labels
from specclient.edit.wrapping import HEAD_LINES, peel, trimmed, unmarked, words_of
from specclient.textfile import LINE_END

_COMMENTED = re.compile(
    r"^(?:#|//|--|;|%|<!--|/\*)\s*(?:file(?:name)?:\s*)?(\S+?)\s*(?:-->|\*/)?$", re.IGNORECASE
)
_LAYERS = 3
"""A fence around a tag around a fence is the most that models were seen to write."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The file's text (LF), and what stood around it."""

    text: str = field(repr=False)
    fence: bool = False
    """A code fence, or a pair of tags, around the whole answer was taken off."""
    before: int = 0
    after: int = 0
    """Lines of prose left out before and after the file's text."""


def extract(answer: str, original: str, name: str = "") -> Extracted:
    """Take the new text out of `answer`; `original` (LF) decides what belongs to the file called `name`."""
    own = words_of(original.split("\n"))
    answer = unmarked(answer.removeprefix("\ufeff"), original)
    lines = trimmed(LINE_END.sub("\n", answer).split("\n"))
    before = after = layers = 0
    while layers < _LAYERS and (layer := peel(lines, own, original)) is not None:
        lines, layers = layer.lines, layers + 1
        before += layer.before
        after += layer.after
    lines = [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
    announced = _announced(lines, own, name, original)
    title = _title(lines[announced:], own, name)
    before += len(words_of(lines[:announced])) + title
    text = "\n".join(lines[announced + title :])
    return Extracted(text, fence=layers > 0, before=before, after=after)


def _title(lines: list[str], own: list[str], name: str) -> int:
    """1 where the first line is a comment with nothing but the file's name, which the model put there."""
    found = _COMMENTED.match(lines[0].strip()) if lines and name else None
    if found is None or lines[0].strip() in own:
        return 0
    return int(PurePath(found.group(1).strip("`'\"")).name == PurePath(name).name)


def _announced(lines: list[str], own: list[str], name: str, original: str) -> int:
    """How many lines announce the file before its first line comes, blank ones after them included."""
    if not lines or not own or lines[0].strip() in own:
        return 0
    first = lines[0]
    speaks = greets(first) or labels(first, name) or (is_sentence(first) and not is_prose(name, original))
    if not speaks:
        return 0
    for index, line in enumerate(lines[1:HEAD_LINES], start=1):
        if line.strip() == own[0]:
            return index
    return 0
