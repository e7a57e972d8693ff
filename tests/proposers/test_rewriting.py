"""What one edit teaches about the rest of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.proposers.rewriting import Rewrites


def learn(before: str, old: str, new: str, rest: str) -> tuple[Rewrites, str]:
    """The rules after one edit, and the rest as they would have it."""
    rewrites = Rewrites()
    rewrites.learn(before, old, new, rest)
    return rewrites, rewrites.apply(rest, at_line_start=False)[0]


@pytest.mark.parametrize(
    ("before", "old", "new", "rest", "expected"),
    [
        ("def f(", "count", "total", "):\n    return count\n", "):\n    return total\n"),
        ("x = my_", "count", "total", " + 1\ny = my_count\n", " + 1\ny = my_total\n"),
        ("", "count = count", "n = n", " + 1\nprint(count, counter)\n", " + 1\nprint(n, counter)\n"),
        ("    ", "print", "logger.info", "(a)\n    print(b)\n", "(a)\n    logger.info(b)\n"),
        ("a", "\r", "", "\nb\r\nc\r\n", "\nb\nc\n"),
        ("a", "\r\n", "\n", "b\r\nc\r\n", "b\nc\n"),
        ("a", "\n", "\r\n", "b\nc\n", "b\r\nc\r\n"),
    ],
    ids=["word", "part of a word", "word twice", "phrase", "CR dropped", "CRLF to LF", "LF to CRLF"],
)
def test_a_repeated_edit_is_foreseen(before: str, old: str, new: str, rest: str, expected: str) -> None:
    assert learn(before, old, new, rest)[1] == expected


def test_a_shifted_line_shifts_its_block_and_no_more() -> None:
    rest = "for a in b:\n        c(a)\n\n    d()\nnext()\n    e()\n"
    rewrites, _ = learn("x\n", "    ", "        ", rest)
    shifted, _ = rewrites.apply(rest, at_line_start=False)
    assert shifted == "for a in b:\n            c(a)\n\n        d()\nnext()\n    e()\n"


def test_tabs_become_spaces_at_every_depth() -> None:
    rest = "a\n\t\tb\n\t\t\tc\n"
    assert learn("x\n", "\t", "    ", rest)[1] == "a\n        b\n            c\n"


def test_a_rule_that_fails_is_dropped_and_one_that_holds_survives_a_failure() -> None:
    rewrites, _ = learn("f(", "old", "new", ")\ng(old)\nh(old)\n")
    (rule,) = rewrites.rules.values()
    rewrites.record(rule, hit=True)
    assert not rewrites.record(rule, hit=False)
    assert rewrites.record(rule, hit=False)
    assert rewrites.apply("old", at_line_start=False) == ("old", [])


def test_what_does_not_come_again_makes_no_rule() -> None:
    assert learn("f(", "old", "new", ")\nnothing here\n")[0].rules == {}


@given(
    st.text("ab_ \n\r\t(.)", max_size=12),
    st.text("ab_ \n\r\t(.)", max_size=12),
    st.text("ab_ \n\r\t(.)", max_size=60),
    st.booleans(),
)
def test_spans_account_for_every_character(old: str, new: str, rest: str, at_line_start: bool) -> None:
    rewrites = Rewrites()
    rewrites.learn("a\n  b", old, new, rest)
    text, spans = rewrites.apply(rest, at_line_start=at_line_start)
    position = old_position = 0
    for span in spans:
        assert text[position : span.start] == rest[old_position : span.old_start]
        assert span.start <= span.end
        assert span.old_start <= span.old_end
        position, old_position = span.end, span.old_end
    assert text[position:] == rest[old_position:]
