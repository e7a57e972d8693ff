"""What models put around a file: fences, tags, marks of a chat template, thoughts; taken off layer by layer.

A wrapper is one only if the file has no such line itself, and if what is inside looks like the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from specclient.edit.prose import greets

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")
_THINKING = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL)
_THOUGHT = re.compile(r"</think(?:ing)?>[ \t]*$\s*", re.MULTILINE)
_MARK = re.compile(r"^\s*(<\|[\w ]+\|>|<s>)|(<\|[\w ]+\|>|</s>)\s*$")
"""What ends or begins a text in chat templates; a server with a wrong template lets it through."""
_TAG = re.compile(r"^([<\[])([\w-]+)(?:\s[^>\]]*)?[>\]]$")
_TAG_NAMES = re.compile(
    r"(?:\w+[_-])?(?:file|code|document|contents?|source|output|answer|response|result|text)(?:[_-]\w+)?",
    re.IGNORECASE,
)
_BEGIN = re.compile(
    r"^\W*(?:begin|start)\b.*\b(?:file|code|document|content|text)\b|^\W*file begin", re.IGNORECASE
)
_END = re.compile(r"^\W*end\b.*\b(?:file|code|document|content|text)\b|^\W*file end", re.IGNORECASE)
HEAD_LINES = 8
"""How far into an answer its wrapper may begin: behind a few lines of greeting."""


@dataclass(frozen=True, slots=True)
class Peeled:
    """An answer with one layer less, and how many lines of prose stood outside that layer."""

    lines: list[str]
    before: int
    after: int


def trimmed(lines: list[str]) -> list[str]:
    """Without the blank lines at both ends."""
    first, last = 0, len(lines)
    while last > first and not lines[last - 1].strip():
        last -= 1
    while first < last and not lines[first].strip():
        first += 1
    return lines[first:last]


def words_of(lines: list[str]) -> list[str]:
    """The lines that are not blank, stripped."""
    return [line.strip() for line in lines if line.strip()]


def fence_lines(text: str) -> int:
    """How many lines of `text` open or close a code fence."""
    return sum(1 for line in text.split("\n") if _FENCE.match(line))


def unmarked(answer: str, original: str) -> str:
    """Without thoughts and marks of a chat template that the file does not have itself."""
    if not _THINKING.match(original):
        answer = _THINKING.sub("", answer, count=1)
    thought = _THOUGHT.search(answer)
    if thought is not None and "<think" not in answer[: thought.end()] and "</think" not in original:
        answer = answer[thought.end() :]  # its opening tag stood in the prompt
    while (mark := _MARK.search(answer)) is not None and (mark[1] or mark[2]) not in original:
        answer = answer[: mark.start()] + answer[mark.end() :]
    return answer


def peel(lines: list[str], own: list[str], original: str) -> Peeled | None:
    """One wrapper off; None where there is none. `own` are the file's lines as of `words_of`."""
    return _unfenced(lines, own, original) or _untagged(lines, own)


def _unfenced(lines: list[str], own: list[str], original: str) -> Peeled | None:
    start = _fence_start(lines, own, original)
    if start is None:
        return None
    opening = _FENCE.match(lines[start])
    assert opening is not None
    body = lines[start + 1 :]
    end = _fence_end(body, original)
    after = words_of(body[end + 1 :])
    if not set(own).isdisjoint(after):
        return None  # the file goes on: the fence was its own
    inner = body[:end]
    if end == len(body) and inner:
        inner[-1] = _unglued(inner[-1], opening.group(1), own)
    return Peeled(trimmed(inner), len(words_of(lines[:start])), len(after))


def _fence_start(lines: list[str], own: list[str], original: str) -> int | None:
    """The line of the fence that the model put around the file; None where there is none."""
    head = lines[: HEAD_LINES + 1]
    index = next((number for number, line in enumerate(head) if _FENCE.match(line)), None)
    if index is None:
        return None
    before, inside = words_of(lines[:index]), words_of(lines[index + 1 :])
    had = set(own)
    if not had.isdisjoint(before):
        return None  # the file had begun before this fence: it is the file's own
    if own and _FENCE.match(own[0]):
        as_the_file = words_of(lines[index:])[: len(own)] == own
        return index if inside[:1] == own[:1] and not as_the_file else None
    if before and greets(before[0]):
        return index
    if before and fence_lines("\n".join(lines)) == fence_lines(original):
        return None  # no fence more than the file has: its first lines were edited
    known = sum(text in had for text in inside)
    return index if not before or 2 * known >= len(inside) else None


def _fence_end(body: list[str], original: str) -> int:
    """The line that closes the wrapper; the length of `body` where it was left open.

    Fences inside come in pairs, so a closing one is there if their number differs oddly from the file's.
    """
    fences = [index for index, line in enumerate(body) if _FENCE.match(line)]
    if not fences or (len(fences) - fence_lines(original)) % 2 == 0:
        return len(body)
    return fences[-1]


def _unglued(line: str, fence: str, own: list[str]) -> str:
    """The last line without a closing fence that the model wrote right behind it."""
    rest = line.rstrip().removesuffix(fence)
    return rest if rest.strip() and rest != line.rstrip() and line.strip() not in own else line


def _untagged(lines: list[str], own: list[str]) -> Peeled | None:
    """A pair of lines like <file> and </file>, [FILE] and [/FILE], BEGIN FILE and END FILE off."""
    had = set(own)
    for start, line in enumerate(lines[: HEAD_LINES + 1]):
        opening = line.strip()
        if opening in had:
            return None
        closing = _closing_of(opening, own)
        end = next((at for at in range(len(lines) - 1, start, -1) if closing(lines[at].strip())), None)
        if end is None or lines[end].strip() in had:
            continue
        inside, after = words_of(lines[start + 1 : end]), words_of(lines[end + 1 :])
        inside = [text for text in inside if not _FENCE.match(text)]
        known = sum(text in had for text in inside)
        # A pair that says "file" and has everything in it is enough, however much was rewritten inside.
        certain = start == 0 and not after and "file" in opening.lower()
        if (certain or 2 * known >= len(inside)) and had.isdisjoint(after):
            return Peeled(trimmed(lines[start + 1 : end]), len(words_of(lines[:start])), len(after))
    return None


def _closing_of(opening: str, own: list[str]) -> Callable[[str], bool]:
    """What a line must be to close the wrapper that `opening` opens; nothing, where it opens none."""
    tag = _TAG.match(opening)
    if tag is not None and _TAG_NAMES.fullmatch(tag.group(2)):
        # In a file of markup, an element around everything is likely to be the edit.
        if own and own[0].startswith("<") and "file" not in tag.group(2).lower():
            return lambda _line: False
        closing = f"</{tag.group(2)}>" if tag.group(1) == "<" else f"[/{tag.group(2)}]"
        return lambda line: line == closing
    if _BEGIN.match(opening):
        return lambda line: _END.match(line) is not None
    return lambda _line: False
