"""The file's text out of a model's answer.

Models are told to answer with the file alone. Many wrap it in a code fence all the same, some greet first,
some explain afterwards, some think aloud. Whatever is taken off here is told to the caller; what the file
itself holds (its own fences, its own first line) is never taken for a wrapper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from specclient.textfile import LINE_END

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")
_THINKING = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL)
_GREETING = re.compile(
    r"^(here(?:'s|’s| is| are)|sure\b|certainly\b|of course\b|okay\b|ok,|below is"
    r"|the (?:updated|modified|edited|complete|changed)|i(?:'ve|’ve| have)\b|updated (?:file|code))",
    re.IGNORECASE,
)
_COMMENTED = re.compile(
    r"^(?:#|//|--|;|%|<!--|/\*)\s*(?:file(?:name)?:\s*)?(\S+?)\s*(?:-->|\*/)?$", re.IGNORECASE
)
_GREETING_LINES = 8


@dataclass(frozen=True, slots=True)
class Extracted:
    """The file's text (LF), and what stood around it."""

    text: str = field(repr=False)
    fence: bool = False
    """A code fence around the whole answer was taken off."""
    before: int = 0
    after: int = 0
    """Lines of prose left out before and after the file's text."""


def extract(answer: str, original: str, name: str = "") -> Extracted:
    """Take the new text out of `answer`; `original` (LF) decides what belongs to the file called `name`."""
    if not _THINKING.match(original):
        answer = _THINKING.sub("", answer, count=1)
    own = _prose(original.split("\n"))
    lines = _trimmed(LINE_END.sub("\n", answer).split("\n"))
    start = _wrapper_start(lines, own)
    if start is not None:
        body = lines[start + 1 :]
        end = _wrapper_end(body, original)
        after = _prose(body[end + 1 :])
        if not any(line in own for line in after):  # else the file goes on: the fence was its own
            title = _title(body[:end], own, name)
            before = len(_prose(lines[:start])) + title
            return Extracted("\n".join(body[title:end]), fence=True, before=before, after=len(after))
    greeting = _greeting(lines, own)
    title = _title(lines[greeting:], own, name)
    before = len(_prose(lines[:greeting])) + title
    return Extracted("\n".join(lines[greeting + title :]), before=before)


def _title(lines: list[str], own: list[str], name: str) -> int:
    """1 where the first line is a comment with nothing but the file's name, which the model put there."""
    found = _COMMENTED.match(lines[0].strip()) if lines and name else None
    if found is None or lines[0].strip() in own:
        return 0
    return int(PurePath(found.group(1).strip("`'\"")).name == PurePath(name).name)


def _trimmed(lines: list[str]) -> list[str]:
    first, last = 0, len(lines)
    while last > first and not lines[last - 1].strip():
        last -= 1
    while first < last and not lines[first].strip():
        first += 1
    return lines[first:last]


def _prose(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def _wrapper_start(lines: list[str], own: list[str]) -> int | None:
    """The line of the fence that the model put around the file; None where there is none."""
    head = lines[: _GREETING_LINES + 1]
    index = next((number for number, line in enumerate(head) if _FENCE.match(line)), None)
    if index is None:
        return None
    before, inside = _prose(lines[:index]), _prose(lines[index + 1 :])
    if any(text in own for text in before):
        return None  # the file had begun before this fence: it is the file's own
    if own and _FENCE.match(own[0]):
        as_the_file = _prose(lines[index:])[: len(own)] == own
        return index if inside[:1] == own[:1] and not as_the_file else None
    if before and greets(before[0]):
        return index
    known = sum(text in own for text in inside)
    return index if not before or 2 * known >= len(inside) else None


def _wrapper_end(body: list[str], original: str) -> int:
    """The line that closes the wrapper; the length of `body` where it was left open.

    Fences inside come in pairs, so a closing one is there if their number differs oddly from the file's.
    """
    fences = [index for index, line in enumerate(body) if _FENCE.match(line)]
    if not fences or (len(fences) - fence_lines(original)) % 2 == 0:
        return len(body)
    return fences[-1]


def greets(line: str) -> bool:
    """Whether a line reads like a model's greeting."""
    return _GREETING.match(line.strip()) is not None


def fence_lines(text: str) -> int:
    """How many lines of `text` open or close a code fence."""
    return sum(1 for line in text.split("\n") if _FENCE.match(line))


def _greeting(lines: list[str], own: list[str]) -> int:
    """How many lines of greeting stand before the file's text, blank ones after them included."""
    if not lines or not own or not greets(lines[0]) or lines[0].strip() in own:
        return 0
    for index, line in enumerate(lines[1:_GREETING_LINES], start=1):
        if line.strip() == own[0]:
            return index
    return 0
