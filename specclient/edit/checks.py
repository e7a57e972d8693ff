"""Signs that an answer is not the whole file, or not the file at all."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from specclient.edit.extract import Extracted, fence_lines, greets
from specclient.edit.restore import Restored, simplified
from specclient.textfile import FileImage

_ELISION = re.compile(
    r"(?:\b(?:rest|remainder)\s+of\s+(?:the|this|your|my)?\s*(?:\w+\s+)?(?:file|code|class|function|content|document|"
    r"text|module|script|methods?|implementation|here)\b"
    r"|\b(?:rest|remainder)\s+(?:of\s+\w+\s+)?(?:is|are|remains?|stays?)\s+(?:the\s+same|unchanged|here)\b"
    r"|\b(?:existing|previous|original|other|remaining|unchanged)\s+(?:code|content|lines?|methods?|functions?|text)\b"
    r".{0,30}(?:\.\.\.|…|\bhere\b|\bunchanged\b|\bsame\b|\bomitted\b)"
    r"|(?:\.\.\.|…)\s*(?:\(?(?:the\s+)?(?:rest|existing|previous|remaining|unchanged|other|same)\b)"
    r"|\b(?:code|content|lines?)\s+(?:is|are|remains?|stays?)?\s*(?:unchanged|omitted|truncated|the\s+same)\b"
    r"|\bomitted\s+for\s+brevity\b|\bsame\s+as\s+(?:before|above|the\s+original)\b)",
    re.IGNORECASE,
)
_ONLY_DOTS = re.compile(
    r"^(?:(?:#|//|/\*|--|;|%|<!--|\(\*|\"\"\"|')\s*)?(?:\.\.\.+|…)\s*(?:\*/|-->|\*\)|\"\"\"|')?$"
)
_MARKED = re.compile(r"^(?:#+|//+|/\*+|--+|;+|%+|<!--|\(\*|\"\"\"|[\[(<{]|\.\.\.|…)\s*")
"""What sets a note apart from the file's own text: a comment's mark, a bracket, dots."""
_STANDS_FOR_TEXT = re.compile(
    r"^[^\w]*(?:(?:\w+\s+)?(?:snip(?:ped)?|truncated|elided|omitted|skipped|abbreviated)\b"
    r"|and so (?:on|forth)\b|etc\b|to be continued\b|no (?:other |further )?changes\b"
    r"|(?:\d+|many|several|some)\s+(?:more|other|further|similar|unchanged)\b"
    r"|(?:(?:keep|leave|insert|include|paste|copy)\s+)?(?:all\s+)?(?:of\s+)?(?:the\s+|your\s+)?"
    r"(?:rest|remaining|remainder|existing|original|previous|unchanged|other)\b"
    r"|lines?\s+\d+\s*(?:-|–|to|through)\s*\d+\b|continues?\b|unchanged\b|same\b)(?!\s*[,=(])",
    re.IGNORECASE,
)
"""A note that begins like this, in an answer shorter than the file, stands for what is missing."""
_CLOSING = re.compile(
    r"^(?:i(?:'ve|’ve| have)?\s+(?:also\s+)?"
    r"(?:renamed|changed|updated|replaced|added|removed|made|kept|modified)\b"
    r"|(?:this|the)\s+(?:change|edit|update|code|file|function|modified|updated)\b.{0,40}"
    r"\b(?:now|has been|should|will)\b"
    r"|let me know\b|note\s*(?:that|:)|in this (?:updated|modified|version)\b|explanation\b)",
    re.IGNORECASE,
)
_SHRUNK_FROM_LINES = 12
_PROSE_SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".qmd", ".rmd")


@dataclass(frozen=True, slots=True)
class EditWarning:
    """Something about an edit that the caller should look at. With `blocks`, writing needs `force`."""

    code: str
    text: str
    blocks: bool = False

    def __str__(self) -> str:
        return self.text


def check(image: FileImage, extracted: Extracted, restored: Restored) -> tuple[EditWarning, ...]:
    """Every warning about one answer, the blocking ones first."""
    found = [
        *_elided(image, restored.text),
        *_shrunk(image.text, restored.text),
        *_chatter(image, restored.text),
        *_taken_off(extracted),
        *_kept(image.text, restored),
    ]
    return tuple(sorted(found, key=lambda warning: not warning.blocks))


def _new_lines(original: str, text: str) -> list[tuple[int, str]]:
    """(line number, stripped line) of each line that the file did not have."""
    known = {line.strip() for line in original.split("\n")}
    numbered = enumerate(text.split("\n"), start=1)
    return [(number, line.strip()) for number, line in numbered if line.strip() and line.strip() not in known]


def _elided(image: FileImage, text: str) -> list[EditWarning]:
    shorter = len(text) < len(image.text)
    for number, line in _new_lines(image.text, text):
        heading = line.startswith("#") and _is_prose(image)
        if _ELISION.search(line) or (
            shorter and not heading and (_ONLY_DOTS.match(line) or _stands_for_text(line))
        ):
            return [
                EditWarning("elision", f"Line {number} of the answer stands for text left out.", blocks=True)
            ]
    return []


def _is_prose(image: FileImage) -> bool:
    return image.name.lower().endswith(_PROSE_SUFFIXES)


def _stands_for_text(line: str) -> bool:
    mark = _MARKED.match(line)
    return mark is not None and _STANDS_FOR_TEXT.match(line[mark.end() :]) is not None


def _shrunk(original: str, text: str) -> list[EditWarning]:
    old = [simplified(line) for line in original.split("\n") if line.strip()]
    new = [simplified(line) for line in text.split("\n") if line.strip()]
    if not new:
        return [EditWarning("empty", "The answer holds no text for the file.", blocks=True)]
    if len(old) < _SHRUNK_FROM_LINES:
        return []
    if len(new) < len(old) / 2:
        return [
            EditWarning("shrunk", f"The answer has {len(new)} lines of the file's {len(old)}.", blocks=True)
        ]
    common = (Counter(old) & Counter(new)).total()
    if common < len(old) / 5:
        return [
            EditWarning(
                "unrelated", f"Only {common} of the file's {len(old)} lines are in the answer.", blocks=True
            )
        ]
    return []


def _chatter(image: FileImage, text: str) -> list[EditWarning]:
    """Prose around the file, or fences inside it, that could not be told from the file with certainty."""
    fresh = dict(_new_lines(image.text, text))
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines, start=1) if line.strip()), 0)
    last = next((number for number in range(len(lines), 0, -1) if lines[number - 1].strip()), 0)
    found = []
    if first in fresh and greets(fresh[first]):
        found.append(EditWarning("preamble", "The answer begins with a sentence about itself.", blocks=True))
    if last in fresh and _CLOSING.match(fresh[last]):
        found.append(EditWarning("afterword", "The answer ends with a sentence about itself.", blocks=True))
    if not _is_prose(image) and fence_lines(text) and not fence_lines(image.text):
        found.append(EditWarning("fences", "The answer has code fences between its parts.", blocks=True))
    return found


def _taken_off(extracted: Extracted) -> list[EditWarning]:
    count = extracted.before + extracted.after
    if not count:
        return []
    return [EditWarning("prose", f"{_lines(count)} of prose around the file's text left out.")]


def _kept(original: str, restored: Restored) -> list[EditWarning]:
    """Say what was put back, and how to get it the other way."""
    if not restored.kept_lines:
        return []
    hint = "exact=True (--exact) takes the answer as it is"
    what = f"{_lines(restored.kept_lines)}: blanks, quotes or dashes kept as in the file"
    if restored.text == original:
        what += ", and that was the whole difference"
    return [EditWarning("kept", f"{what}; {hint}.")]


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
