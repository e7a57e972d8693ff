"""What models put around a file: fences, tags, marks of a chat template, thoughts; taken off layer by layer.

A wrapper is one only if the file has no such line itself, and if what is inside looks like the file or what
stands around it speaks of it. What may as well be the file's own is taken off too, and called doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from specclient.edit.naming import introduces, titles
from specclient.edit.prose import (
    closes,
    declines,
    greets,
    greets_for_sure,
    is_prose,
    is_sentence,
    speaks,
    tells_of_the_file,
)

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
_FENCE_WORDS = (
    r"(?:```|~~~|\bfenc\w+|\bcode[- ]?(?:block|box|snippet)s?\b|\bblocks? of code\b|\bsnippets?\b"
    r"|\btriple[- ]backticks?\b|\bpre-?formatted\b)"
)
_ASKS_FOR_FENCE = re.compile(_FENCE_WORDS, re.IGNORECASE)
_ASKS_FOR_FENCE_AROUND = re.compile(
    r"\b(?:wrap|put|plac|enclos|surround|turn|convert|format|mak)\w*\b[^.\n]*"
    r"\b(?:all|everything|it|whole|entire|file|text|contents?|document|note)\b[^.\n]*"
    rf"\b(?:in|into|inside|within|as|with|by|between)\s+(?:\w+\s+){{0,3}}{_FENCE_WORDS}",
    re.IGNORECASE,
)
HEAD_LINES = 8
"""How far into an answer its wrapper may begin: behind a few lines of greeting."""


_SUBSTANCE = 3
"""As many of the file's lines inside a fence show that the file is inside, and no example from a document."""


@dataclass(frozen=True, slots=True)
class File:
    """What is known of the file that an answer should hold."""

    text: str
    name: str
    lines: list[str]
    """Its lines as of `words_of`."""
    prose: bool

    @classmethod
    def of(cls, text: str, name: str) -> File:
        """The file called `name`, `text` with LF ends."""
        return cls(text, name, words_of(text.split("\n")), is_prose(name, text))


@dataclass(frozen=True, slots=True)
class Peeled:
    """An answer with one layer less, and the lines that stood outside that layer."""

    lines: list[str]
    before: list[str]
    after: list[str]
    doubtful: bool = False
    """What was taken off may have been the file's own."""


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


def is_fence(line: str) -> bool:
    """Whether a line opens or closes a code fence."""
    return _FENCE.match(line) is not None


def fence_lines(text: str) -> int:
    """How many lines of `text` open or close a code fence."""
    return sum(1 for line in text.split("\n") if is_fence(line))


def asks_for_fence(instruction: str) -> bool:
    """Whether an instruction speaks of code fences, so that one in the answer may be the edit."""
    return _ASKS_FOR_FENCE.search(instruction) is not None


def asks_for_fence_around(instruction: str) -> bool:
    """Whether an instruction wants the whole file in a code fence."""
    return _ASKS_FOR_FENCE_AROUND.search(instruction) is not None


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


def peel(lines: list[str], file: File) -> Peeled | None:
    """One wrapper off; None where there is none."""
    return _unfenced(lines, file) or _untagged(lines, file.lines)


def _unfenced(lines: list[str], file: File) -> Peeled | None:
    head = lines[: HEAD_LINES + 1]
    start = next((number for number, line in enumerate(head) if is_fence(line)), None)
    if start is None:
        return None
    certain = _wraps(lines, start, file)
    if certain is None:
        return None
    opening, body = _fence(lines[start]), lines[start + 1 :]
    end = _fence_end(body, file.text)
    before, after = words_of(lines[:start]), words_of(body[end + 1 :])
    if not set(file.lines).isdisjoint(after):
        return None  # the file goes on: the fence was its own
    inner = body[:end]
    old = file.text.split("\n")
    sound = fence_lines(file.text) and not _in_blocks(old)[1]
    if sound and _turned(old, inner) > _turned(old, lines):
        return None  # a block that is new above the file's own ones
    if end == len(body) and inner:
        inner[-1] = _unglued(inner[-1], opening[0], file.lines)
    certain = (
        certain
        and _names_a_language(opening[1])
        and _closes_for_sure(body, end, opening[0], file.text)
        and (_explains(after, words_of(inner), file) or (file.prose and bool(before)))
    )
    return Peeled(trimmed(inner), before, after, doubtful=not certain)


def _fence(line: str) -> tuple[str, str]:
    """(the signs of a fence, what stands behind them)"""
    found = _FENCE.match(line)
    assert found is not None
    return found[1], found[2].strip()


def _wraps(lines: list[str], start: int, file: File) -> bool | None:
    """Whether the fence at `start` is certainly what the model put around the file; None where it is none."""
    before, inside = words_of(lines[:start]), words_of(lines[start + 1 :])
    own, had = file.lines, set(file.lines)
    if not had.isdisjoint(before) or (before and not inside):
        return None  # the file had begun before this fence: it is the file's own, or ends something
    extra = fence_lines("\n".join(lines)) > fence_lines(file.text)
    begins_alike = bool(own) and inside[:1] == own[:1]
    if own and is_fence(own[0]):
        again = bool(inside) and is_fence(inside[0]) and (begins_alike or extra)
        as_the_file = words_of(lines[start:])[: len(own)] == own
        return True if again and not as_the_file else None
    introduced = bool(before) and (greets(before[0]) or any(introduces(line, file.name) for line in before))
    kept = not extra and (lines[start].strip(), *inside[:1]) in set(pairwise(own))
    if not extra and not introduced and (before or kept):
        return None  # no fence more than the file has: its first lines were edited, or went
    known = sum(text in had for text in inside)
    mostly = 2 * known >= len(inside)
    if before and not introduced and not mostly:
        return None
    if kept or (not extra and not begins_alike and not mostly):
        return False
    return not file.prose or not before or (mostly and known >= _SUBSTANCE) or _leads_over(before, file.name)


def _leads_over(before: list[str], name: str) -> bool:
    """Whether lines above a fence speak of the file in it, so that they are no lines of a document."""
    if greets_for_sure(before[0]):
        return True
    if any(line.startswith("#") and titles(line, name) for line in before):
        return False  # the heading of a document as well
    leads = [line for line in before if introduces(line, name) or greets_for_sure(line)]
    return bool(leads) and all(line in leads or is_sentence(line) for line in before)


def _fence_end(body: list[str], original: str) -> int:
    """The line that closes the wrapper; the length of `body` where it was left open.

    Fences inside come in pairs, so a closing one is there if their number differs oddly from the file's.
    """
    fences = [index for index, line in enumerate(body) if is_fence(line)]
    if not fences or (len(fences) - fence_lines(original)) % 2 == 0:
        return len(body)
    return fences[-1]


def _closes_for_sure(body: list[str], end: int, opening: str, original: str) -> bool:
    """Whether the wrapper ends at `end` however one reads it.

    Fences more than the file has may be new in it, or belong to an explanation behind it.
    """
    fences = [(index, *_fence(line)) for index, line in enumerate(body) if is_fence(line)]
    if len(fences) - fence_lines(original) <= 1:
        return True
    open_ones = [opening]
    for index, signs, info in fences:
        if not info and signs[0] == open_ones[-1][0] and len(signs) >= len(open_ones[-1]):
            open_ones.pop()
        else:
            open_ones.append(signs)
        if not open_ones:
            return index == end
    return end == len(body)


def _turned(old: list[str], new: list[str]) -> int:
    """How many lines that stood in a code block stand outside of one now, or the other way round.

    A block that is left open counts as a line.
    """
    before, _ = _in_blocks(old)
    after, left_open = _in_blocks(new)
    return left_open + sum(before[line].isdisjoint(after[line]) for line in before.keys() & after.keys())


def _in_blocks(lines: list[str]) -> tuple[dict[str, set[bool]], bool]:
    """(whether each line stands in a code block, whether the last block is open), as Markdown is read."""
    found: dict[str, set[bool]] = {}
    opening = ""
    for line in lines:
        if not is_fence(line):
            found.setdefault(line.strip(), set()).add(bool(opening))
            continue
        signs, info = _fence(line)
        if not opening:
            opening = signs
        elif not info and signs.startswith(opening):
            opening = ""
    found.pop("", None)
    return found, bool(opening)


def _names_a_language(info: str) -> bool:
    """Whether what stands behind an opening fence is no text of the file: one word, or attributes."""
    return " " not in info or any(sign in info for sign in "={}:./")


def _explains(after: list[str], inner: list[str], file: File) -> bool:
    """Whether what follows the wrapper is no part of the file."""
    after = [line for line in after if not line.startswith(("</", "[/")) and not _END.match(line)]
    if not after:
        return True
    first = after[0]
    if closes(first, in_prose=False) or declines(first) or greets(first):
        return True
    if not file.prose:
        return speaks(first)
    of_itself = first.startswith("I ") or tells_of_the_file(first)
    return len(inner) >= len(file.lines) >= _SUBSTANCE or (of_itself and speaks(first))


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
        inside = [text for text in inside if not is_fence(text)]
        known = sum(text in had for text in inside)
        # A pair that says "file" and has everything in it is enough, however much was rewritten inside.
        certain = start == 0 and not after and "file" in opening.lower()
        if (certain or 2 * known >= len(inside)) and had.isdisjoint(after):
            return Peeled(trimmed(lines[start + 1 : end]), words_of(lines[:start]), after)
    return None


def tagged(lines: list[str], own: list[str]) -> bool:
    """Whether a pair of tags that the file does not have is left, the first of them as the first line."""
    if not lines or lines[0] in own:
        return False
    closing = _closing_of(lines[0], own)
    return any(closing(line) and line not in own for line in lines[1:])


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
