"""Whether a line is a model speaking about its answer, or a line of a file."""

from __future__ import annotations

import re

PROSE_SUFFIXES = (
    ".md",
    ".markdown",
    ".mdx",
    ".rst",
    ".txt",
    ".adoc",
    ".qmd",
    ".rmd",
    ".tex",
    ".html",
    ".htm",
)
"""Files in which a sentence at the end may be the edit."""

_MARKUP = r"^[\s*_>]*"
"""What may stand before a remark. Not "#": that begins a comment in code and a heading in prose."""
_GREETING = re.compile(
    r"^(here(?:'s|’s| is| are)|sure\b|certainly\b|of course\b|okay\b|ok,|below is"
    r"|the (?:updated|modified|edited|complete|changed)|i(?:'ve|’ve| have)\b|(?:updated|new) (?:file|code))",
    re.IGNORECASE,
)
_REMARK = re.compile(
    _MARKUP + r"(?:i(?:'ve|’ve| have)?\s+(?:also\s+)?"
    r"(?:renamed|changed|updated|replaced|added|removed|made|kept|modified)\b"
    r"|(?:key\s+changes|(?:summary\s+of\s+(?:the\s+)?)?changes\s+made|summary\s+of\s+(?:the\s+)?changes)\s*:"
    r"|let me know\b|i hope (?:this|that|it)\b|is there anything\b|explanation\W*:"
    r"|this (?:change|edit|code) (?:renames?|changes?|replaces?|adds?|removes?)\b)",
    re.IGNORECASE,
)
"""A model about what it did: in no file, whatever it is about."""
_COMMENTARY = re.compile(
    _MARKUP + r"(?:(?:this|the)\s+(?:change|edit|update|code|file|function|modified|updated)\b.{0,40}"
    r"\b(?:now|has been|should|will)\b"
    r"|changes\s*:|feel free\b|note\s*(?:that|:)|in this (?:updated|modified|version)\b|explanation\b)",
    re.IGNORECASE,
)
"""What may be commentary behind code, and may as well be a sentence of a document."""
_NO_FILE = re.compile(
    _MARKUP + r"(?:(?:i(?:'m|’m| am)\s+)?(?:sorry|unable)\b|i (?:can(?:not|'t|’t)|could not|won't)\b"
    r"|as an ai\b|unfortunately\b|no (?:further |other )?changes?\b"
    r"|(?:the |this )?(?:file|code|text|document)?\s*(?:is |was |remains? |stays? |already )*unchanged\W*$"
    r"|(?:the|this) (?:file|code|text|document) (?:is|was|has|does|already)\b"
    r"|(?:done|ok|okay|yes|n/?a|none|nothing(?: to change)?)\W*$)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"^[A-Z][\w'’]*(?:,? [\w'’`\"().,/-]+){2,} ?[.!?:]$")
_WORDS = re.compile(r"^[^\w]*[^\W\d_][\w'’,.;:!?()\"-]*(?: [\w'’,.;:!?()\"-]+){3,}$")
_AROUND = " *_>#-`"
_SPOKEN = re.compile(r"[^\W\d_][\w'’-]*[.,;:!?]?")
_BEGINS_A_SENTENCE = re.compile(r"[A-Z](?:[a-z'’]|\b)")
_SAID = re.compile(r"^[A-Z][\w'’ ,-]*[.!:]$")
_ABOUT_THE_FILE = re.compile(
    r"\b(?:file|version|text|document|contents?|code|result|output|translation|changes?|you go|it is)\b",
    re.IGNORECASE,
)


def greets(line: str) -> bool:
    """Whether a line reads like a model's greeting."""
    return _GREETING.match(line.strip()) is not None


def greets_for_sure(line: str) -> bool:
    """Whether a greeting is one in a document as well, where "Here are the steps:" may be a line of it."""
    return greets(line) and (
        not line.strip().lower().startswith(("here", "below")) or tells_of_the_file(line)
    )


def tells_of_the_file(line: str) -> bool:
    """Whether a line has a word in it for the file, or for what was done to it."""
    return _ABOUT_THE_FILE.search(line) is not None


def announces(line: str) -> bool:
    """Whether a greeting ends as one, and not as a heading does."""
    return greets(line) and line.rstrip().endswith((":", ".", "!"))


def closes(line: str, *, in_prose: bool) -> bool:
    """Whether a line reads like what a model adds when it is done, in a file of code or `in_prose`."""
    line = line.strip()
    return _REMARK.match(line) is not None or (not in_prose and _COMMENTARY.match(line) is not None)


def declines(line: str) -> bool:
    """Whether a line says that there is no new file, in place of one."""
    return _NO_FILE.match(line.strip()) is not None


def speaks(line: str) -> bool:
    """Whether a line is words, and no code: an explanation, or its heading."""
    line = line.strip().strip(_AROUND)
    if any(pattern.match(line) for pattern in (_SAID, _REMARK, _COMMENTARY, _NO_FILE)):
        return True
    signs = line.split()
    words = [sign for sign in signs if _SPOKEN.fullmatch(sign)]
    return _BEGINS_A_SENTENCE.match(line) is not None and len(words) >= max(3, len(signs) / 2)


def is_sentence(line: str) -> bool:
    """Whether a line is one whole sentence, with nothing in it that code is made of."""
    return _SENTENCE.match(line.strip()) is not None


def is_prose(name: str, text: str) -> bool:
    """Whether a file is written for people: a sentence in it is its own."""
    if name.lower().endswith(PROSE_SUFFIXES):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    return bool(lines) and 2 * sum(_WORDS.match(line.strip()) is not None for line in lines) >= len(lines)
