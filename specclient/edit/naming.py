"""Lines that say which file follows, in whatever words: "The file a.py:", "**src/a.py**", "# a.py"."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import PurePath

_ROLE = re.compile(
    r"^[\s*_>]*(?:assistant|output|result|answer|response"
    r"|(?:the )?(?:updated |new |final |complete |modified )?(?:file|code|version|content))\W*$",
    re.IGNORECASE,
)
_ANNOUNCING = re.compile(
    r"the|this|an?|files?|(?:file)?name|named|called|path|contents?|text|code|document|of|for|in|with|and|is|are|be"
    r"|now|here|s|below|as|follows|following|new|updated|edited|modified|changed|complete|full|whole|entire|final"
    r"|revised|corrected|translated|version|after|before|changes?|edit|applied",
    re.IGNORECASE,
)
"""Words around a name in a line that says nothing but that the file follows."""
_WORD = re.compile(r"\w+")
_MARKS = " \t*_`'\"()[]<>!#-"
_FEW_WORDS = 10
_LONGEST = 200
"""Characters of the longest line that is looked at: a label is short, and minified code is not."""


def labels(line: str, name: str) -> bool:
    """Whether a line only announces what follows: "Output:", or the file by its name."""
    return announces_by_name(line, name) or _ROLE.match(line.strip()) is not None


def announces_by_name(line: str, name: str) -> bool:
    """Whether a line has the file's name in it, and beside it only that the file follows."""
    rest = _without_name(line, name)
    return rest is not None and all(map(_ANNOUNCING.fullmatch, _WORD.findall(rest)))


def names(text: str, name: str) -> bool:
    """Whether a text has the file's name in it."""
    return any(_without_name(line, name) is not None for line in text.split("\n"))


def titles(line: str, name: str) -> bool:
    """Whether a line is the file's name and no word more, as a title might be."""
    rest = _without_name(line, name)
    return rest is not None and not _WORD.search(rest)


def introduces(line: str, name: str) -> bool:
    """Whether a line leads over to the file: a label, or its name, few words of any language, and a colon."""
    if labels(line.lstrip("# "), name):
        return True
    rest = _without_name(line, name)
    base = PurePath(name).name
    if rest is None or (base.isalpha() and base.islower()):  # "notes" is a word as well
        return False
    return line.rstrip(_MARKS).endswith((":", "：")) and len(_WORD.findall(rest)) <= _FEW_WORDS


def _without_name(line: str, name: str) -> str | None:
    """`line` without the file's name, path and all; None where it does not hold it."""
    base = PurePath(name).name
    line = unicodedata.normalize("NFC", line.strip())
    if not base or len(line) > _LONGEST:
        return None
    rest, count = _pattern(unicodedata.normalize("NFC", base)).subn(" ", line, count=1)
    return rest if count else None


@lru_cache(maxsize=8)
def _pattern(base: str) -> re.Pattern[str]:
    """A file's name where it stands by itself; a character of it that is no text may have become any."""
    spelled = r"[^\s/\\]{0,8}?".join(map(re.escape, re.split("\ufffd+", base)))
    return re.compile(
        rf"(?<![\w.\\/-])(?:[^\s/\\*`]*[/\\])*{spelled}(?![\w-]|\.\w)", re.IGNORECASE if "." in base else 0
    )
