"""Signs that what a model put around a file is still there, or that what was taken off was the file's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from specclient.edit import prompt
from specclient.edit.extract import Extracted
from specclient.edit.naming import introduces, names, titles
from specclient.edit.prose import is_prose, tells_of_the_file
from specclient.edit.wrapping import HEAD_LINES, asks_for_fence, fence_lines, is_fence, tagged, words_of
from specclient.textfile import FileImage

_MAY_NEED_FENCE = re.compile(r"\b(?:examples?|commands?|usage|how to)\b", re.IGNORECASE)
_ASKS_FOR_TITLE = re.compile(
    r"\b(?:titles?|head(?:ing|er|line)s?|comments?|file ?names?|names? of (?:the|this) file"
    r"|(?:file's|its) name)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(`+|[\"'])(?:(?!\1)[^\n])+\1|“[^”\n]+”|«[^»\n]+»")
_HEADING = re.compile(r"#{1,6} |<|---|\||[-*+] |\d+\. ")
"""What begins a document, and no sentence of a model about the file."""


def framed(image: FileImage, extracted: Extracted, text: str, instruction: str) -> Iterator[tuple[str, str]]:
    """(code, sentence) of each such sign in `text`, which is what was made of the answer to `instruction`."""
    yield from _taken_in_doubt(image, extracted, text, instruction)
    own, lines = set(words_of(image.text.split("\n"))), words_of(text.split("\n"))
    if not lines:
        return
    first = lines[0]
    last = lines[-1]
    if first not in own and _is_label(first, image):
        yield "label", "The answer begins with a line that only says which file follows."
    elif last not in own and names(last, image.name) and introduces(last, image.name):
        yield "label", "The answer ends with a line that only says which file follows."
    elif not _may_have_fence(instruction) and _encloses(lines, own, image, extracted):
        yield "wrapped", "The answer has a line and a code fence around the file that may not be its own."
    elif tagged(lines, words_of(image.text.split("\n"))) or _is_object(image.text, text, instruction):
        yield "wrapped", "The answer has tags around the file, or is an object with the file in it."
    if fence_lines(text) % 2 and not fence_lines(image.text) % 2:
        yield "fences", "The answer has a code fence that is opened and not closed, or the other way round."
    if _QUOTED.fullmatch(text.strip()) and not _QUOTED.fullmatch(image.text.strip()):
        yield "quoted", "The answer has quotes or backticks around all of it."
    if any(prompt.echoed(line, instruction) for line in lines if line not in own):
        yield "echo", "The answer has lines of the question in it."


def _taken_in_doubt(
    image: FileImage, extracted: Extracted, text: str, instruction: str
) -> Iterator[tuple[str, str]]:
    """What was taken for a wrapper, and may be what the instruction asked for."""
    unfenced = extracted.fence and is_prose(image.name, image.text)
    wants_fence = unfenced and not fence_lines(image.text + "\n" + text) and asks_for_fence(instruction)
    if extracted.doubtful or wants_fence:
        yield "doubt", "A code fence was taken off, with what stood outside it, that may be the file's own."
    elif any(titles(line, image.name) for line in extracted.above) and (
        _ASKS_FOR_TITLE.search(instruction) or names(instruction, image.name)
    ):
        yield "doubt", "A line with the file's name was left out that may have been asked for."


def _is_label(line: str, image: FileImage) -> bool:
    """Whether a new first line is a label, in a file that does not begin with one of its own."""
    had = next(iter(words_of(image.text.split("\n"))), "")
    if introduces(had, image.name) or not introduces(line, image.name):
        return False
    bare = line.strip("#*_ ")  # "output:" alone may be a key, and "Output" a heading
    certain = names(line, image.name) or " " in bare or bare.casefold() == "assistant"
    return certain or (bare.endswith(":") and is_prose(image.name, image.text))


def _may_have_fence(instruction: str) -> bool:
    return asks_for_fence(instruction) or _MAY_NEED_FENCE.search(instruction) is not None


def _encloses(lines: list[str], own: set[str], image: FileImage, extracted: Extracted) -> bool:
    """Whether lines are a few words and a new fence with all of the file that is left in it."""
    fences = [number for number, line in enumerate(lines) if is_fence(line)]
    if len(fences) <= fence_lines(image.text) or not 0 < fences[0] <= HEAD_LINES:
        return False
    before, after = lines[: fences[0]], lines[fences[-1] + 1 :]
    speaks = any(names(line, image.name) or tells_of_the_file(line) for line in before)
    # Below a heading it is a document, if there was none to compare with or a wrapper came off already.
    document = (not own or extracted.fence) and _HEADING.match(lines[0]) is not None and not speaks
    return own.isdisjoint([*before, *after]) and not document


def _is_object(old: str, new: str, instruction: str) -> bool:
    """Whether a file that was no JSON is an object with a text in it now, unasked."""
    if not new.lstrip().startswith("{") or old.lstrip().startswith("{") or "json" in instruction.lower():
        return False
    try:
        return isinstance(json.loads(new), dict)
    except (ValueError, RecursionError):
        return False
