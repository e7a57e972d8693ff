"""Edits that repeat: rules learnt from the edits made so far, applied to the text still to come.

Text in, text out. A model that renames `count` once will rename it throughout; one that indents a line
will indent the block; one that writes LF for CRLF will do so to the end. A rule is a guess with a
record: applied where its text occurs, counted when it comes true, dropped when it fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

RuleKind = Literal["word", "phrase", "indent", "newline"]
KINDS: tuple[RuleKind, ...] = ("word", "phrase", "indent", "newline")

LONGEST_RULE = 80
"""Characters of the longest text that a rule may look for or write."""
MOST_RULES = 24
PIECES = re.compile(r"\r?\n[ \t]*|\w+|[^\w\n]")
BREAK = re.compile(r"\r?\n[ \t]*")
BEFORE = re.compile(r"(?:\r?\n[ \t]*|\w+|[^\w\s][ \t]*|[ \t]+)\Z")
AFTER = re.compile(r"[ \t]*(?:\w+|[^\w\s])?")


@dataclass(slots=True)
class Rule:
    """`old` becomes `new`; `confirmed` and `missed` count its occurrences since it was learnt."""

    kind: RuleKind
    old: str
    new: str
    confirmed: int = 0
    missed: int = 0

    @property
    def feature(self) -> int:
        """Kind and record as one small integer, for the acceptance table."""
        return KINDS.index(self.kind) * 8 + min(self.confirmed, 3) * 2 + (self.missed > 0)


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a rewritten text stand for [old_start, old_end) of the source."""

    start: int
    end: int
    old_start: int
    old_end: int
    rule: Rule


@dataclass(slots=True)
class Rewrites:
    """The rules of one request for one known text."""

    rules: dict[tuple[RuleKind, str], Rule] = field(default_factory=dict)
    _pattern: re.Pattern[str] | None = None

    def learn(self, before: str, old: str, new: str, rest: str) -> bool:
        """Take in one edit: `old` became `new` between `before` and `rest`; whether a rule changed.

        `rest` is all the text still to come: what does not occur in it is not worth a rule.
        """
        if old.replace("\r", "") == new.replace("\r", "") and ("\r" in old) != ("\r" in new):
            return self._set("newline", *(("\r\n", "\n") if "\r" in old else ("\n", "\r\n")))
        left = match.group() if (match := BEFORE.search(before[-LONGEST_RULE:])) else ""
        right = match.group() if (match := AFTER.match(rest[:LONGEST_RULE])) else ""
        old, new = left + old + right, left + new + right
        changed = self._learn_indent(old, new)
        old_pieces, new_pieces = PIECES.findall(old), PIECES.findall(new)
        if len(old_pieces) == len(new_pieces) and _same_shape(old_pieces, new_pieces):
            for old_piece, new_piece in zip(old_pieces, new_pieces, strict=True):
                if old_piece != new_piece and not old_piece[:1].isspace():
                    changed |= old_piece in rest and self._set("word", old_piece, new_piece)
            return changed
        return self._learn_phrase(old_pieces, new_pieces, rest) or changed

    def _learn_indent(self, old: str, new: str) -> bool:
        """The last line begun inside the edit kept its words but not its leading whitespace."""
        if "\n" not in old or "\n" not in new:
            return False
        old_line, new_line = old.rsplit("\n", 1)[1], new.rsplit("\n", 1)[1]
        old_word, new_word = old_line.lstrip(" \t"), new_line.lstrip(" \t")
        if (
            not old_word
            or not new_word
            or not (old_word.startswith(new_word) or new_word.startswith(old_word))
        ):
            return False
        old_indent = old_line[: len(old_line) - len(old_word)]
        new_indent = new_line[: len(new_line) - len(new_word)]
        return old_indent != new_indent and self._set("indent", old_indent, new_indent)

    def _learn_phrase(self, old: list[str], new: list[str], rest: str) -> bool:
        """The pieces that differ, if something was removed that can be found again."""
        head = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        removed = "".join(old[head : len(old) - tail])
        written = "".join(new[head : len(new) - tail])
        if {"\n", "\r"} & set(removed + written) or not any(c.isalnum() for c in removed):
            return False
        if len(removed) < 3 or max(len(removed), len(written)) > LONGEST_RULE:
            return False
        return removed in rest and self._set("phrase", removed, written)

    def _set(self, kind: RuleKind, old: str, new: str) -> bool:
        known = self.rules.get((kind, old))
        if known is not None and known.new == new:
            return False
        self.rules.pop((kind, old), None)
        if kind == "newline":
            self.rules = {key: rule for key, rule in self.rules.items() if key[0] != kind}
        self.rules[kind, old] = Rule(kind, old, new)
        while len(self.rules) > MOST_RULES:
            del self.rules[next(iter(self.rules))]
        self._pattern = None
        return True

    def record(self, rule: Rule, *, hit: bool, source_held: bool = True) -> bool:
        """Count an occurrence; drop the rule, and say so, if it fails too often.

        `source_held`: the target wrote the source's own text there, so an indented block has ended.
        """
        if hit:
            rule.confirmed += 1
            return False
        rule.missed += 1
        if rule.missed > rule.confirmed or (rule.kind == "indent" and source_held):
            dropped = self.rules.pop((rule.kind, rule.old), None) is not None
            self._pattern = None
            return dropped
        return False

    def apply(self, text: str, *, at_line_start: bool) -> tuple[str, list[Span]]:
        """`text` as the rules would have it, with the places that changed."""
        if not self.rules:
            return text, []
        if self._pattern is None:
            self._pattern = self._compile()
        out: list[str] = []
        spans: list[Span] = []
        size = copied = 0
        indenting = True
        matches = self._pattern.finditer(text)
        if at_line_start and (lead := re.match(r"[ \t]*", text)) is not None:
            new, rule, indenting = self._break("", lead.group(), text[lead.end() : lead.end() + 1], indenting)
            if rule is not None:
                spans.append(Span(0, len(new), 0, lead.end(), rule))
                out.append(new)
                size, copied = len(new), lead.end()
        for match in matches:
            found = match.group()
            if match.start() < copied:
                continue
            if found[0] in "\r\n":
                stop = found.index("\n") + 1
                following = text[match.end() : match.end() + 1]
                new, rule, indenting = self._break(found[:stop], found[stop:], following, indenting)
            else:
                rule = self.rules.get(("word", found)) or self.rules.get(("phrase", found))
                new = rule.new if rule is not None else found
            if rule is None:
                continue
            out.append(text[copied : match.start()])
            size += match.start() - copied
            spans.append(Span(size, size + len(new), match.start(), match.end(), rule))
            out.append(new)
            size += len(new)
            copied = match.end()
        out.append(text[copied:])
        return "".join(out), spans

    def _compile(self) -> re.Pattern[str]:
        texts = [rule.old for rule in self.rules.values() if rule.kind not in ("indent", "newline")]
        texts.sort(key=len, reverse=True)
        edges = [_bounded(text) for text in texts]
        return re.compile("|".join([r"\r?\n[ \t]*", *edges]))

    def _break(
        self, ending: str, indent: str, following: str, indenting: bool
    ) -> tuple[str, Rule | None, bool]:
        """A line break and the next line's indent rewritten; the rule used; whether to go on indenting."""
        used: Rule | None = None
        for rule in self.rules.values():
            if rule.kind == "newline" and ending == rule.old:
                ending, used = rule.new, rule
        if following and following not in "\r\n" and indenting:
            shifted = self._indent_rule(indent)
            if shifted is not None:
                return ending + _shift(indent, shifted), shifted, True
            if any(rule.kind == "indent" and len(indent) < len(rule.old) for rule in self.rules.values()):
                indenting = False
        return ending + indent, used, indenting

    def _indent_rule(self, indent: str) -> Rule | None:
        exact = self.rules.get(("indent", indent))
        if exact is not None:
            return exact
        rules = [r for r in self.rules.values() if r.kind == "indent" and indent.startswith(r.old)]
        return max(rules, key=lambda r: len(r.old), default=None)


def _same_shape(old: list[str], new: list[str]) -> bool:
    """Whether two edits differ in words and indents only, piece by piece."""
    pairs = list(zip(old, new, strict=True))
    if not all(a == b or (_is_name(a) and _is_name(b)) or (a.isspace() and b.isspace()) for a, b in pairs):
        return False
    return any(a != b for a, b in pairs)


def _is_name(piece: str) -> bool:
    return piece[0].isalpha() or piece[0] == "_"


def _bounded(text: str) -> str:
    head = r"(?<!\w)" if text[0].isalnum() or text[0] == "_" else ""
    tail = r"(?!\w)" if text[-1].isalnum() or text[-1] == "_" else ""
    return head + re.escape(text) + tail


def _shift(indent: str, rule: Rule) -> str:
    """`indent` changed as the rule changed its own: by unit between tabs and spaces, else as a prefix."""
    old, new = rule.old, rule.new
    if old and not old.strip("\t") and new and not new.strip(" ") and len(new) % len(old) == 0:
        return indent.replace("\t", " " * (len(new) // len(old)))
    if new and not new.strip("\t") and old and not old.strip(" ") and len(old) % len(new) == 0:
        width = len(old) // len(new)
        return "\t" * (len(indent) // width) + " " * (len(indent) % width)
    return new + indent[len(old) :]
