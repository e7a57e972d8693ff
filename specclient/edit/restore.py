"""A model's text back into the file's own bytes.

Lines that the edit did not touch come back exactly as they were: their line ending, their trailing blanks,
their no-break spaces and dashes. Models write such characters in simpler forms. The simplified copy serves
to compare lines and is never written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from specclient.textfile import FileImage

# One character for one character, so that positions in a simplified line are positions in the line.
_SIMPLER = str.maketrans(
    {
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "
        ),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_DROPPED = str.maketrans(dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"))
_BLANKS = " \t\f\v\u00a0\u3000"
_MENDABLE = 4_000_000
"""Characters compared with characters: beyond 2,000 a line (minified code) the comparison is not worth it."""

Block = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Restored:
    """The new file: `text` with LF ends, `data` as bytes."""

    text: str = field(repr=False)
    data: bytes = field(repr=False)
    kept_lines: int
    """Lines in which the model had simplified characters that are now as in the file."""


def restore(image: FileImage, text: str, *, exact: bool = False) -> Restored:
    """`text` (LF) as the new content of the file.

    Encoding, byte order mark, line endings and the blank lines at either end are always the file's. With
    `exact` the characters within the lines are taken as the model wrote them.
    """
    old = image.text.split("\n")
    new = _mirror_edges(old, text)
    blocks = list(_blocks(old, new, exact=exact))
    mended = new if exact else _put_back(old, new, blocks)
    kept = sum(before != after for before, after in zip(new, mended, strict=True))
    ends = _line_endings(image, blocks, len(mended))
    return Restored("\n".join(mended), image.encode("".join(_woven(mended, ends))), kept)


def _mirror_edges(old: list[str], text: str) -> list[str]:
    """The lines of `text` with the blank lines before and after them that the file has."""
    body = _body(text.split("\n"))
    written = _body(old)
    if not body:
        return [""]
    if not written:
        return [*body, ""] if len(old) > 1 else body
    first = next(number for number, line in enumerate(old) if line.strip())
    return [*old[:first], *body, *old[first + len(written) :]]


def _body(lines: list[str]) -> list[str]:
    """The lines from the first to the last that is not blank."""
    written = [number for number, line in enumerate(lines) if line.strip()]
    return lines[written[0] : written[-1] + 1] if written else []


def simplified(line: str) -> str:
    """A line as models tend to write it, to compare by."""
    line = unicodedata.normalize("NFC", line).translate(_SIMPLER).translate(_DROPPED)
    line = line.replace("\u2026", "...").rstrip()
    body = line.lstrip()
    indent = line[: len(line) - len(body)]
    return indent.expandtabs(4) + body


def _blocks(old: list[str], new: list[str], *, exact: bool) -> Iterator[Block]:
    """Matching and differing runs of lines, as difflib's opcodes."""
    a = old if exact else [simplified(line) for line in old]
    b = new if exact else [simplified(line) for line in new]
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    if head:
        yield "equal", 0, head, 0, head
    matcher = SequenceMatcher(None, a[head : len(a) - tail], b[head : len(b) - tail], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        yield tag, i1 + head, i2 + head, j1 + head, j2 + head
    if tail:
        yield "equal", len(a) - tail, len(a), len(b) - tail, len(b)


def _put_back(old: list[str], new: list[str], blocks: list[Block]) -> list[str]:
    """`new` with every character of `old` that the model only wrote in a simpler form."""
    result = list(new)
    tabs = _indented_by_tabs(old)
    same = [
        pair
        for tag, i1, i2, j1, j2 in blocks
        if tag == "equal"
        for pair in zip(old[i1:i2], new[j1:j2], strict=True)
    ]
    padded, noise = _padded(same), _noise(same)
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            result[j1:j2] = old[i1:i2]
            continue
        fresh = [line.translate(noise) for line in new[j1:j2]]
        if tabs:
            fresh = [_tabbed(line) for line in fresh]
        if padded:
            fresh = [line.rstrip(_BLANKS) for line in fresh]
        paired = tag == "replace" and i2 - i1 == j2 - j1
        result[j1:j2] = map(_mend_line, old[i1:i2], fresh) if paired else fresh
    return result


def _indented_by_tabs(lines: list[str]) -> bool:
    """Whether tabs, and nothing else, indent the file: then a line indented by spaces would break it."""
    indents = {line[0] for line in lines if line[:1] in ("\t", " ") and line.strip()}
    return indents == {"\t"}


def _tabbed(line: str) -> str:
    """A line with its indentation of four spaces a step, as models write it, in tabs."""
    body = line.lstrip(" ")
    steps, rest = divmod(len(line) - len(body), 4)
    return "\t" * steps + " " * rest + body


def _padded(same: list[tuple[str, str]]) -> bool:
    """Whether the model put blanks behind lines that have none, so that those of new lines mean nothing."""
    return any(
        after.strip() and after != after.rstrip(_BLANKS) and before == before.rstrip(_BLANKS)
        for before, after in same
    )


def _noise(same: list[tuple[str, str]]) -> dict[int, str]:
    """Odd characters that the model wrote for plain ones in lines it should have copied, to put back."""
    return {
        ord(wrote): had
        for before, after in same
        if len(before) == len(after)
        for had, wrote in zip(before, after, strict=True)
        if had != wrote and _SIMPLER.get(ord(wrote)) == had
    }


def _mend_line(old: str, new: str) -> str:
    """A changed line with its unchanged characters in the form that the file has them in."""
    had, wrote = old.rstrip(_BLANKS), new.rstrip(_BLANKS)
    blanks = old[len(had) :]
    a, b = had.translate(_SIMPLER), wrote.translate(_SIMPLER)
    if (a == had and b == wrote and not blanks) or len(a) * len(b) > _MENDABLE:
        return new
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < 0.6:  # below that it is another line, not a changed one
        return new
    codes = matcher.get_opcodes()
    mended = "".join(had[i1:i2] if tag == "equal" else wrote[j1:j2] for tag, i1, i2, j1, j2 in codes)
    return mended + (blanks or new[len(wrote) :])


def _line_endings(image: FileImage, blocks: list[Block], count: int) -> list[str]:
    """An ending for each new line: its own where it has a counterpart, its neighbour's where it is new."""
    usual = image.line_ending
    own = [end or usual for end in image.endings] or [usual]
    own.append(usual)
    ends = [usual] * count
    for _, i1, i2, j1, j2 in blocks:
        for offset in range(j2 - j1):
            source = min(i1 + offset, i2 - 1) if i2 > i1 else max(i1 - 1, 0)
            ends[j1 + offset] = own[min(source, len(own) - 1)]
    return ends


def _woven(lines: list[str], ends: list[str]) -> Iterator[str]:
    last = len(lines) - 1
    for index, line in enumerate(lines):
        yield line if index == last else line + ends[index]
