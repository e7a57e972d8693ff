"""Signs that an answer is not the whole file, or not the file at all."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

from specclient.edit.extract import Extracted
from specclient.edit.framing import framed
from specclient.edit.losses import (
    asks_for_less,
    displaced,
    grown_by,
    lost,
    only_adds,
    only_renames,
    undefined,
)
from specclient.edit.prose import announces, closes, declines, greets, is_prose, is_sentence
from specclient.edit.restore import Restored, simplified
from specclient.edit.syntax import broken
from specclient.edit.wrapping import fence_lines
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
_SHRUNK_FROM_LINES = 12
_UNRELATED_FROM_LINES = _REPEATED_FROM_LINES = 3
_STATEMENT_LINES = 3
_LOSSES_TOLD = 4
_RESEMBLING, _RESEMBLING_SHORT = 0.55, 0.3
"""Of the characters: "port = 1" and "port = 2" share most, a file and a remark about it hardly any."""
_PATCH = re.compile(
    r"^(?:@@ -\d+|<{7}(?: |$)|>{7}(?: |$)|<{5,} ?SEARCH|>{5,} ?REPLACE|\*\*\* (?:Begin|End|Update) )"
)
_PATCH_SUFFIXES = (".diff", ".patch", ".rej")
_NUMBERED = re.compile(r"^\s*\d+\s*[:|.)\t]")
_QUOTES = ("'''", '"""')


@dataclass(frozen=True, slots=True)
class EditWarning:
    """Something about an edit that the caller should look at. With `blocks`, writing needs `force`."""

    code: str
    text: str
    blocks: bool = False

    def __str__(self) -> str:
        return self.text


def check(
    image: FileImage, extracted: Extracted, restored: Restored, instruction: str
) -> tuple[EditWarning, ...]:
    """Every warning about one answer to `instruction`, the blocking ones first."""
    short = [*_elided(image, restored.text), *_shrunk(image, restored.text, instruction)]
    found = [
        *(short or _left_out(image.text, restored.text, instruction)),
        *_grown(image.text, restored.text, instruction),
        *_other_form(image, restored.text),
        *_chatter(image, restored.text),
        *(_blocking(code, said) for code, said in framed(image, extracted, restored.text, instruction)),
        *_taken_off(image, extracted, restored),
        *_kept(image.text, restored),
    ]
    if not any(warning.blocks for warning in found):  # what is no file at all has no grammar either
        found += _ungrammatical(image, restored.text)
    return tuple(sorted(found, key=lambda warning: not warning.blocks))


def _new_lines(original: str, text: str) -> list[tuple[int, str]]:
    """(line number, stripped line) of each line that the file did not have."""
    known = {line.strip() for line in original.split("\n")}
    numbered = enumerate(text.split("\n"), start=1)
    return [(number, line.strip()) for number, line in numbered if line.strip() and line.strip() not in known]


def _elided(image: FileImage, text: str) -> list[EditWarning]:
    shorter = len(text) < len(image.text)
    for number, line in _new_lines(image.text, text):
        heading = line.startswith("#") and is_prose(image.name, image.text)
        if _ELISION.search(line) or (
            shorter and not heading and (_ONLY_DOTS.match(line) or _stands_for_text(line))
        ):
            return [_blocking("elision", f"Line {number} of the answer stands for text left out.")]
    return []


def _stands_for_text(line: str) -> bool:
    mark = _MARKED.match(line)
    return mark is not None and _STANDS_FOR_TEXT.match(line[mark.end() :]) is not None


def _shrunk(image: FileImage, text: str, instruction: str) -> list[EditWarning]:
    old = [simplified(line) for line in image.text.split("\n") if line.strip()]
    new = [simplified(line) for line in text.split("\n") if line.strip()]
    if not new:
        return [_blocking("empty", "The answer holds no text for the file.")]
    common = (Counter(old) & Counter(new)).total()
    # A short file may well lose most of its lines, but not the one that it begins with for another.
    if len(new) < len(old) / 2 and (len(old) >= _SHRUNK_FROM_LINES or new[0] not in old):
        return [
            _blocking("shrunk", f"The answer has {_lines(len(new))}, the file {len(old)}, blank ones aside.")
        ]
    # A sentence has nothing of itself in another language; a line of code or of settings keeps something.
    short_code = not is_prose(image.name, image.text) and not asks_for_less(instruction)
    from_lines = 1 if short_code else _UNRELATED_FROM_LINES
    if len(old) >= from_lines and common < len(old) / 5 and not _resembles(old, new):
        return [_blocking("unrelated", f"The answer has only {common} of the file's {_lines(len(old))}.")]
    return _cut(old, new)


def _resembles(old: list[str], new: list[str]) -> bool:
    """Whether a text could be the file with nearly every line edited, as by renaming what each one names."""
    one, two = "\n".join(old)[:2000], "\n".join(new)[:2000]
    needed = _RESEMBLING if len(old) >= _SHRUNK_FROM_LINES else _RESEMBLING_SHORT
    return SequenceMatcher(None, one, two, autojunk=False).ratio() >= needed


def _cut(old: list[str], new: list[str]) -> list[EditWarning]:
    """An answer that stops within a line, before the file does."""
    known = {line: number for number, line in enumerate(old)}
    last = next((known[line] for line in reversed(new) if line in known), len(old))
    missing = len(old) - 1 - last
    if new[-1] not in known and missing > 1 and old[last + 1].startswith(new[-1]):
        return [_blocking("cut", f"The answer ends within a line, with {missing} of the file's to come.")]
    return []


def _left_out(original: str, text: str, instruction: str) -> list[EditWarning]:
    """Parts of the file that are gone, with nothing in their place: refused unless asked for."""
    asked, every = asks_for_less(instruction), only_renames(instruction)
    losses = [loss for loss in lost(original, text) if loss.grave or every]
    if not losses and only_adds(instruction):
        losses = undefined(original, text, instruction) or displaced(original, text)
    if not losses:
        return []
    more = len(losses) - _LOSSES_TOLD
    parts = [str(loss) for loss in losses[:_LOSSES_TOLD]] + ([f"{more} more"] if more > 0 else [])
    single = len(losses) == 1 and losses[0].first == losses[0].last
    said = f"Not in the answer {'is' if single else 'are'} the file's {', '.join(parts)}"
    if asked:
        return [EditWarning("lost", f"{said}.")]
    return [_blocking("lost", f"{said}, and the instruction asks for nothing to go.")]


def _grown(original: str, text: str, instruction: str) -> list[EditWarning]:
    """The file's lines once more: models begin again at the end, or write the new name beside the old."""
    if only_renames(instruction) and (more := grown_by(original, text)):
        return [
            _blocking(
                "grown",
                f"The answer has all of the file and {_lines(more)} more, and only names should change.",
            )
        ]
    old = Counter(simplified(line) for line in original.split("\n") if line.strip())
    new = Counter(simplified(line) for line in text.split("\n") if line.strip())
    again = sum(min(count, new[line] - count) for line, count in old.items() if new[line] > count)
    if old.total() < _REPEATED_FROM_LINES or again < 0.6 * old.total():
        return []
    return [
        _blocking(
            "repeated",
            f"{again} of the file's {_lines(old.total())} {'is' if again == 1 else 'are'} there twice.",
        )
    ]


def _other_form(image: FileImage, text: str) -> list[EditWarning]:
    """The edit told in another form than as the new file: a patch, or with numbers before the lines."""
    fresh = _new_lines(image.text, text)
    for_patches = image.name.lower().endswith(_PATCH_SUFFIXES)
    if not for_patches and any(_PATCH.match(line) for _, line in fresh):
        return [_blocking("patch", "The answer is a patch, or has parts of one in it.")]
    lines = [line for line in text.split("\n") if line.strip()]
    numbered = sum(_NUMBERED.match(line) is not None for _, line in fresh)
    if len(lines) > 1 and numbered >= 0.8 * len(lines):
        return [_blocking("numbered", "The answer has numbers before its lines.")]
    return []


def _chatter(image: FileImage, text: str) -> list[EditWarning]:
    """Prose around the file, or fences inside it, that could not be told from the file with certainty."""
    prose = is_prose(image.name, image.text)
    fresh = dict(_new_lines(image.text, text))
    lines = text.split("\n")
    written = [number for number, line in enumerate(lines, start=1) if line.strip()]
    if not written:
        return []
    first, last = fresh.get(written[0], ""), fresh.get(written[-1], "")
    found = []
    if announces(first) if prose else greets(first):
        found.append(_blocking("preamble", "The answer begins with a sentence about itself."))
    if len(written) <= _STATEMENT_LINES and declines(first):
        found.append(_blocking("statement", "The answer is a statement and not the file."))
    added = [fresh[number] for number in _trailing(written, fresh)]
    beside = (
        [fresh[number] for number in written[1:] if number in fresh] if len(fresh) == len(written) else []
    )
    if (
        any(closes(line, in_prose=True) for line in beside)
        or any(closes(line, in_prose=prose) for line in added)
        or (not prose and (is_sentence(last) or any(map(is_sentence, added[:1]))))
    ):
        found.append(_blocking("afterword", "The answer ends with a sentence about itself."))
    if first in _QUOTES and last == first:
        found.append(_blocking("quoted", "The answer has quotes around the whole file."))
    if not prose and fence_lines(text) and not fence_lines(image.text):
        found.append(_blocking("fences", "The answer has code fences between its parts."))
    return found


def _ungrammatical(image: FileImage, text: str) -> list[EditWarning]:
    said = broken(image.name, image.text, text) if text.strip() else None
    return [_blocking("syntax", said)] if said is not None else []


def _trailing(written: list[int], fresh: dict[int, str]) -> list[int]:
    """The numbers of the last lines that the file did not have, unless they are all there is."""
    count = next((at for at, number in enumerate(reversed(written)) if number not in fresh), 0)
    return written[len(written) - count :] if count else []


def _blocking(code: str, text: str) -> EditWarning:
    return EditWarning(code, text, blocks=True)


def _taken_off(image: FileImage, extracted: Extracted, restored: Restored) -> list[EditWarning]:
    count = extracted.before + extracted.after
    if count:
        return [EditWarning("prose", f"{_lines(count)} of prose around the file's text left out.")]
    if extracted.fence and restored.text == image.text and is_prose(image.name, image.text):
        what = "The fence or tags around the answer were taken off, and that was the whole difference"
        hint = "an instruction as 'Put all of it in a code block.' keeps a fence"
        return [EditWarning("fence", f"{what}; {hint}.")]
    return []


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
