"""Parts of a file that an answer left out without being asked: at its head, in its middle, at its tail.

A part counts as left out where its lines are nowhere in the answer and nothing stands in their place. Lines
that were moved, changed or replaced are an edit's own business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from specclient.edit.restore import simplified

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|async|final|override|virtual"
    r"|inline|const|unsafe|extern|pub(?:\(\w+\))?|create|or|replace|unique)\s+)*"
)
_DEFINITION = re.compile(
    rf"^{_MODIFIERS}(?:def|class|function|fn|func|struct|enum|interface|trait|impl|module|namespace|type|record"
    r"|union|protocol|sub|procedure|table|view|index|trigger|macro_rules!)\b[*]?\s+(?:\([^)]*\)\s*)?[`\"]?"
    r"(?P<name>[\w$.]+)|^\[+(?P<section>[\w .:\"-]+)\]+$",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+|[^\w\s]")
_WORDY = re.compile(r"\w")
_IMPORT = re.compile(r"^(?:import|from|use|using|require|#\s*include|(?:const|let|var)\b.*\brequire)\b")
_IMPORTS_BY = frozenset(
    ["import", "from", "use", "using", "require", "include", "const", "let", "var", "as", "type"]
)
_MIDDLE_LINES = 3
"""Fewer lines than this may go in the middle: an edit often needs one or two no more."""
_ALIKE = 0.4
"""Share of common words from which one line may be another one changed, as by a rename."""
_CELLS = 250_000
"""Pairs of lines that are compared at most; in a longer stretch each new line stands for an old one."""
_MUCH = 0.4
"""Share of a file whose lines no edit that only adds puts others in the place of."""
_NAMED = 3

_GOES = (
    r"remov\w*|delet\w*|drop\w*|eliminat\w*|eras\w+|strip\w*|discard\w*|purg\w+|prun\w+|omit\w*|exclud\w+|nuk\w+"
    r"|get(?:ting)? rid|rid of|tak\w+ out|throw\w* (?:out|away)|leav\w+ out|clean\w*|clear out|wip\w+"
    r"|cut\w*|trim\w*|shorten\w*|simplif\w+|condens\w+|compact\w*|slim\w*|reduc\w+|shrink\w*|minif\w+"
    r"|truncat\w+|collaps\w+|dedup\w*|deduplicat\w+|merg\w+|combin\w+|consolidat\w+|unif(?:y|ies|ied)\w*"
    r"|inlin\w+|replac\w+|rewrit\w+|rewrote|refactor\w*|restructur\w+|overhaul\w*|split\w*|mov(?:e|es|ing)"
    r"|extract\w*|factor\w*|revert\w*|undo\w*|roll\w* back|instead|no longer|no more|not needed|unneeded"
    r"|unused|obsolete|redundant|superfluous|unnecessary|summari[sz]\w+|keep only|only keep|dead code"
)
_GOES_ELSEWHERE = (
    r"entfern\w*|l[öo]e?sch\w*|streich\w*|vereinfach\w*|ersetz\w*|k[üu]e?rz\w*|supprim\w*|enl[eè]v\w*|retir\w*"
    r"|effac\w*|simplifi\w*|remplac\w*|elimin\w*|borr\w*|quita\w*|simplific\w*|reemplaz\w*|substitu\w*|rimuov\w*"
    r"|cancell\w*|semplific\w*|sostitui\w*|verwijder\w*|vervang\w*|usu[nń]\w*|удал\w*|убер\w*|упрост\w*|замен\w*"
)
_NO_SPACES = re.compile(
    "删除|刪除|移除|去掉|去除|简化|簡化|替换|替換|削除|取り除|消して|簡略|置き換|삭제|제거|단순화|교체"
)
_ASKS = re.compile(rf"(?<![\w.])(?:{_GOES}|{_GOES_ELSEWHERE})(?![\w(])", re.IGNORECASE)
_KIND = (
    r"(?:method|function|class|attribute|field|key|option|command|argument|parameter|variable|button|event|target"
    r"|rule|script|task|route|endpoint|flag|column|table|page)s?"
)
_NO_REQUEST = re.compile(
    r"`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)"  # quoted: a name or a text, not a wish
    rf"|(?:\bnot|n['’]t|\bnever|\bwithout|\bnor|\bavoid)\s+(?:\w+\s+)?(?:{_GOES})(?!\w)"
    rf"|\b(?:rename|called|named|{_KIND})\s+(?:the\s+)?(?:{_GOES})(?!\w)"
    rf"|\b(?:the|an?)\s+(?:{_GOES})\s+{_KIND}\b",
    re.IGNORECASE,
)

_ANYTHING = re.compile(
    r"^\W*(?:please\s+)?(?:change|edit|modify|update|improve|rework|fix)"
    r"(?:\s+(?:it|this|that|(?:the|this|my)\s+(?:file|code|script|module|text)))?\W*$",
    re.IGNORECASE,
)
_RENAMES = re.compile(r"^\W*(?:please\s+)?rename\b[^.;\n]*\W*$", re.IGNORECASE)

_ADDS = re.compile(
    r"^\W*(?:please\s+)?(?:add|insert|append|prepend|include|introduce|implement|create|document)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Lines of a file that are not in an answer; the numbers count from 1."""

    first: int
    last: int
    count: int
    """How many of the lines from `first` to `last` hold text."""
    names: tuple[str, ...] = ()
    """What those lines define: functions, classes, sections."""
    grave: bool = True
    """More than the line or two in the middle that many an edit needs no more."""

    def __str__(self) -> str:
        where = f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"
        more = len(self.names) - _NAMED
        names = ", ".join(self.names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        return f"{where} ({names})" if names else where


def asks_for_less(instruction: str) -> bool:
    """Whether an instruction may mean that text goes: it speaks of removing, simplifying, replacing, or says
    only that something is to change."""
    if _ANYTHING.match(instruction) is not None:
        return True
    wish = _NO_REQUEST.sub(" ", instruction)
    return _ASKS.search(wish) is not None or _NO_SPACES.search(wish) is not None


def only_renames(instruction: str) -> bool:
    """Whether an instruction asks for other names and nothing else: then no line can go with it."""
    return _RENAMES.match(instruction) is not None and not asks_for_less(instruction)


def only_adds(instruction: str) -> bool:
    """Whether an instruction asks for more text and nothing else."""
    return _ADDS.match(instruction) is not None and not asks_for_less(instruction)


def undefined(original: str, text: str, instruction: str) -> list[Loss]:
    """What `original` defines and `text` does not, if new definitions cannot be what became of it.

    One that the instruction names is what it asked to add.
    """
    had, has = _definitions(original), _definitions(text)
    missing = [Loss(number, number, 1, (name,)) for name, number in had.items() if name not in has]
    asked = _names(instruction)
    instead = [name for name in has if name not in had and not asked[name]]
    return missing if len(missing) > len(instead) else []


def displaced(original: str, text: str) -> list[Loss]:
    """The lines of `original` that are gone for others unlike them, if they are much of it."""
    old, new = _written(original), _written(text)
    there = {line for _, line in new}
    gone = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(
        None, [line for _, line in old], [line for _, line in new], autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        changed = {i for i, _ in _pairs([line for _, line in old[i1:i2]], [line for _, line in new[j1:j2]])}
        gone += [
            number for at, (number, line) in enumerate(old[i1:i2]) if at not in changed and line not in there
        ]
    return [Loss(number, number, 1) for number in gone] if len(gone) >= _MUCH * len(old) else []


def grown_by(original: str, text: str) -> int:
    """How many lines `text` has more than `original`, if it has all of them."""
    old, new = (Counter(line for _, line in _written(each)) for each in (original, text))
    return 0 if old - new else (new - old).total()


def lost(original: str, text: str) -> list[Loss]:
    """The parts of `original` (LF) that are not in `text`, in the file's order."""
    old, new = _written(original), _written(text)
    gone = Counter(line for _, line in old) - Counter(line for _, line in new)
    words, had = _names(text), _names(original)
    defined = {_defined(line) for _, line in new}
    unneeded = {line for _, line in old if _IMPORT.match(line) and _unneeded(line, had, words)}
    losses = []
    for i1, i2, fresh in _gaps([line for _, line in old], [line for _, line in new]):
        part = [(number, line) for number, line in old[i1:i2] if gone[line] and line not in unneeded]
        loss = _loss(part, defined)
        if loss is None or len(part) * 2 <= i2 - i1:
            continue  # most of it stands elsewhere now
        if not fresh:
            at_an_end = i1 == 0 or i2 == len(old)
            grave = bool(loss.names) or at_an_end or loss.count >= _MIDDLE_LINES
            losses.append(replace(loss, grave=grave))
        elif len(loss.names) > sum(bool(_defined(line)) for line in fresh):
            losses.append(loss)
    return losses or _last_bracket(original, text)


def _last_bracket(original: str, text: str) -> list[Loss]:
    """The file's last line, if it is a bracket and the answer ends with an inner one."""
    old, new = original.rstrip().split("\n"), text.rstrip().split("\n")
    inner = new[-1] in old[:-1] and new[-1] != old[-1] and old[-1] not in new
    return [Loss(len(old), len(old), 1)] if inner and not _WORDY.search(old[-1]) else []


def _written(text: str) -> list[tuple[int, str]]:
    """(number, line) of each line that is not blank; its indentation may change."""
    lines = (simplified(line).strip() for line in text.split("\n"))
    return [(number, line) for number, line in enumerate(lines, start=1) if line]


def _names(text: str) -> Counter[str]:
    return Counter(re.findall(r"[\w$]+", text))


def _unneeded(line: str, had: Counter[str], words: Counter[str]) -> bool:
    """Whether the file used what a line imports, and the answer does no more."""
    imported = {word for word in _names(line) if had[word] > 1} - _IMPORTS_BY
    return bool(imported) and not any(words[word] for word in imported)


def _loss(part: list[tuple[int, str]], defined: set[str]) -> Loss | None:
    """The lines as a loss, with the names that are defined nowhere else now."""
    if not part:
        return None
    names = dict.fromkeys(name for _, line in part if (name := _defined(line)) and name not in defined)
    return Loss(part[0][0], part[-1][0], len(part), tuple(names))


def _definitions(text: str) -> dict[str, int]:
    """Each name that a text defines, with the number of a line that does."""
    return {name: number for number, line in _written(text) if (name := _defined(line))}


def _defined(line: str) -> str:
    """The name that a line gives to what follows it; "" for any other line."""
    found = _DEFINITION.match(line)
    return "" if found is None else found["name"] or found["section"]


def _gaps(old: list[str], new: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """(from, to, the lines in their place) of each run of old lines that have no counterpart."""
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "delete":
            yield i1, i2, []
        elif tag == "replace" and i2 - i1 > j2 - j1:
            yield from _unpaired(old, new, (i1, i2), (j1, j2))


def _unpaired(
    old: list[str], new: list[str], part: tuple[int, int], place: tuple[int, int]
) -> Iterator[tuple[int, int, list[str]]]:
    """The gaps of a stretch in which some new lines are old ones changed."""
    i, j = part[0], place[0]
    for di, dj in [*_pairs(old[slice(*part)], new[slice(*place)]), (part[1] - part[0], place[1] - place[0])]:
        if part[0] + di > i:
            yield i, part[0] + di, new[j : place[0] + dj]
        i, j = part[0] + di + 1, place[0] + dj + 1


def _pairs(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """(old, new) positions of lines that are alike, in order: the pairing with the most in common."""
    if len(old) * len(new) > _CELLS:
        return [(at, at) for at in range(len(new))]
    a, b = ([_words(line) for line in lines] for lines in (old, new))
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + _alike(a[i], b[j]))
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


def _words(line: str) -> set[tuple[str, int]]:
    """The words and signs of a line, each time it comes as one of its own."""
    seen: Counter[str] = Counter()
    words = set()
    for word in _WORD.findall(line):
        seen[word] += 1
        words.add((word, seen[word]))
    return words


def _alike(one: set[tuple[str, int]], two: set[tuple[str, int]]) -> float:
    """Share of the words that two lines have in common; 0 where they are different lines."""
    share = len(one & two) / len(one | two)
    return share if share >= _ALIKE else 0.0
