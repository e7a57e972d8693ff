"""The file's text out of a model's answer.

Models are told to answer with the file alone. Many wrap it in a code fence all the same, some greet first,
some explain afterwards, some think aloud. Whatever is taken off here is told to the caller; what the file
itself holds (its own fences, its own first line) is never taken for a wrapper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from specclient.edit.naming import announces_by_name, labels
from specclient.edit.prose import greets, greets_for_sure, is_sentence
from specclient.edit.wrapping import (
    HEAD_LINES,
    File,
    Peeled,
    asks_for_fence_around,
    fence_lines,
    is_fence,
    peel,
    trimmed,
    unmarked,
    words_of,
)
from specclient.textfile import LINE_END

_COMMENT = re.compile(r"^\s*(?:#|//|--|;|%|<!--|/\*)")
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
    above: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Those of `before` that could be the file's own first line, were they asked for."""
    doubtful: bool = field(default=False, compare=False)
    """What was left out, or a fence that was taken off, may have been the file's own."""


def extract(answer: str, original: str, name: str = "", instruction: str = "") -> Extracted:
    """Take the new text out of `answer`; `original` (LF) decides what belongs to the file called `name`.

    A fence around everything stays where `instruction` asks for it and nothing else changed.
    """
    file = File.of(original, name)
    answer = unmarked(answer.removeprefix("\ufeff"), original)
    lines = trimmed(LINE_END.sub("\n", answer).split("\n"))
    before: list[str] = []
    after = layers = 0
    doubtful = False
    wanted = asks_for_fence_around(instruction)
    while layers < _LAYERS and (layer := peel(lines, file)) is not None:
        if wanted and _is_the_edit(lines, layer, file):
            break
        lines, layers = layer.lines, layers + 1
        before += layer.before
        after += len(layer.after)
        doubtful |= layer.doubtful
    lines = [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
    announced = _announced(lines, file)
    title = _title(lines[announced:], file)
    inside = words_of(lines[: announced + title])
    headings = [line for line in before if file.prose and line.startswith("#")]
    return Extracted(
        "\n".join(lines[announced + title :]),
        fence=layers > 0,
        before=len(before) + len(inside),
        after=after,
        above=(*headings, *inside),
        doubtful=doubtful,
    )


def _is_the_edit(lines: list[str], layer: Peeled, file: File) -> bool:
    """Whether a fence around all of a document, which had none, is all that changed."""
    bare = not (layer.before or layer.after or fence_lines(file.text))
    return bare and file.prose and is_fence(lines[0]) and words_of(layer.lines) == file.lines


def _title(lines: list[str], file: File) -> int:
    """1 where the first line is a comment with nothing but the file's name, which the model put there."""
    if not lines or file.prose or _COMMENT.match(lines[0]) is None or lines[0].strip() in file.lines:
        return 0
    return int(announces_by_name(lines[0], file.name))


def _announced(lines: list[str], file: File) -> int:
    """How many lines announce the file before its first line comes, blank ones after them included."""
    if not lines or not file.lines or lines[0].strip() in file.lines:
        return 0
    first = lines[0]
    speaks = greets_for_sure(first) if file.prose else greets(first) or is_sentence(first)
    speaks |= labels(first, file.name)
    begins = next(line.rstrip() for line in file.text.split("\n") if line.strip())
    if not speaks:
        return 0
    for index, line in enumerate(lines[1:HEAD_LINES], start=1):
        if line.rstrip() == begins or (is_fence(line) and is_fence(file.lines[0])):
            return index
    return 0
