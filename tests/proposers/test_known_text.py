"""The place in a known text is kept, lost, and found again where an edit left it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.proposers.contexts import BEFORE_INDENT, BEHIND_INDENT, WITHIN
from specclient_engine.proposers.known_text import INSIDE, STARTS, KnownText, TokenEdit
from specclient_engine.proposers.vocabulary import BLANK, BREAK, OPEN

TEXT = list(range(100, 160))


def follow(
    text: list[int], output: list[int], breaks: set[int] = frozenset()
) -> tuple[KnownText, list[TokenEdit]]:  # type: ignore[assignment]
    known = KnownText(text, [BREAK if token in breaks else 0 for token in text])
    edits = []
    for size in range(1, len(output) + 1):
        edit = known.follow(output[size - 1], output[:size])
        if edit is not None:
            edits.append(edit)
    return known, edits


def kinds(known: KnownText, *, place: int = WITHIN) -> dict[str, int]:
    """What each kind of guess would have next."""
    return {guess.kind: known.tokens[guess.position] for guess in known.guesses(place)}


def test_copying_keeps_the_cursor() -> None:
    known, edits = follow(TEXT, TEXT[:20])
    assert kinds(known) == {"start": TEXT[20]}
    assert edits == []


def test_after_a_mismatch_deletion_substitution_and_insertion_are_all_on_offer() -> None:
    known, _ = follow(TEXT, [*TEXT[:10], TEXT[13]])
    assert kinds(known) == {"resync": TEXT[14], "substitution": TEXT[11], "insertion": TEXT[10]}
    known, _ = follow(TEXT, [*TEXT[:10], 7])
    assert kinds(known) == {"substitution": TEXT[11], "insertion": TEXT[10]}


def test_a_replaced_line_offers_the_next_one() -> None:
    breaks = {TEXT[9], TEXT[15]}
    known, _ = follow(TEXT, [*TEXT[:10], 7, 8, TEXT[9]], breaks)
    assert kinds(known, place=BEFORE_INDENT)["line"] == TEXT[16]


BREAKING, INDENT = 1, 2
INDENTED = [10, BREAKING, INDENT, 20, 21, BREAKING, INDENT, 30, 31, BREAKING]
"""Three lines whose breaks and indents are tokens of their own."""


def indented(output: list[int]) -> KnownText:
    flags = {BREAKING: BREAK | OPEN, INDENT: BLANK}
    known = KnownText(INDENTED, [flags.get(token, 0) for token in INDENTED])
    for size in range(1, len(output) + 1):
        known.follow(output[size - 1], output[:size])
    return known


def test_an_indent_and_the_word_behind_it_both_start_a_line() -> None:
    assert indented([]).places[1:5] == [2, STARTS, STARTS, INSIDE]


def test_behind_new_lines_the_text_goes_on_before_or_behind_its_indent_as_the_output_does() -> None:
    known = indented([10, BREAKING, INDENT, 77, 78, BREAKING])
    assert kinds(known, place=BEFORE_INDENT)["insertion"] == INDENT
    assert kinds(known, place=BEHIND_INDENT)["insertion"] == 20
    known = indented([10, BREAKING, 88, 89, BREAKING])
    assert kinds(known, place=BEFORE_INDENT)["insertion"] == INDENT
    assert kinds(known, place=BEHIND_INDENT)["insertion"] == 20


def test_the_line_behind_a_replaced_one_is_offered_before_or_behind_its_indent() -> None:
    known = indented([10, BREAKING, INDENT, 77, 78, BREAKING])
    assert known.tokens[known._abreast(known._next_line(known.anchor), BEFORE_INDENT)] == INDENT
    assert kinds(known, place=BEHIND_INDENT)["line"] == 30


def test_an_edit_is_told_once_it_is_behind() -> None:
    _, edits = follow(TEXT, [*TEXT[:10], 7, 8, *TEXT[13:30]])
    assert edits == [TokenEdit(10, 13, 10, 12)]
    _, edits = follow(TEXT, [*TEXT[:10], *TEXT[20:30]])
    assert edits == [TokenEdit(10, 20, 10, 10)]
    _, edits = follow(TEXT, [*TEXT[:10], 7, *TEXT[10:20]])
    assert edits == [TokenEdit(10, 10, 10, 11)]


def test_of_equal_matches_the_nearest_wins() -> None:
    text = [1, 2, 3, 50, 1, 2, 3, 51, 1, 2, 3, 52, 1, 2, 3, 53]
    known, _ = follow(text, [1, 2, 3, 50, 1, 2, 9, 1, 2, 3])
    assert kinds(known)["resync" if known.lost else "cursor"] == 52


def test_the_prediction_is_never_given_up() -> None:
    known, _ = follow(TEXT, [*TEXT[:5], *range(1000, 1400), *TEXT[5:9]])
    assert kinds(known) == {"cursor": TEXT[9]}


@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 6), max_size=60))
def test_the_state_is_consistent_after_any_output(text: list[int], output: list[int]) -> None:
    known, edits = follow(text, output, {0})
    for guess in known.guesses(place=BEFORE_INDENT):
        assert 0 <= guess.position < len(text)
    if known.run and not known.lost:
        run = min(known.run, known.cursor)
        assert text[known.cursor - run : known.cursor] == output[len(output) - run :]
    for edit in edits:
        assert 0 <= edit.old_start <= edit.old_end <= len(text)
        assert 0 <= edit.new_start <= edit.new_end <= len(output)


@given(st.integers(0, 50), st.integers(0, 9), st.lists(st.integers(200, 300), max_size=6))
def test_any_single_edit_of_distinct_tokens_is_found_again(start: int, removed: int, new: list[int]) -> None:
    after = TEXT[start + removed :]
    known, _ = follow(TEXT, [*TEXT[:start], *new, *after[:4]])
    if len(after) > 4:
        assert after[4] in kinds(known).values()
