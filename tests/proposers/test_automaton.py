"""The suffix automaton says what a search of the whole text would say, in linear work."""

from __future__ import annotations

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from specclient_engine.proposers.automaton import SuffixAutomaton, agreement

TEXTS = st.lists(st.integers(0, 3), max_size=60)


def longest_repeat(text: list[int]) -> int:
    """Length of the longest suffix that also ends earlier, by looking everywhere."""
    for length in range(len(text) - 1, 0, -1):
        suffix = text[-length:]
        if any(text[end - length : end] == suffix for end in range(length, len(text))):
            return length
    return 0


@given(TEXTS)
def test_the_match_is_the_longest_earlier_one_after_every_token(text: list[int]) -> None:
    automaton = SuffixAutomaton()
    for size, token in enumerate(text, start=1):
        automaton.append(token)
        length = automaton.match_length
        assert length == longest_repeat(text[:size])
        if length:
            end = automaton.match_end
            assert end < size
            assert text[end - length : end] == text[size - length : size]


@given(TEXTS, st.lists(st.integers(0, 4), max_size=20))
def test_a_walk_matches_what_was_written_and_what_was_not(text: list[int], more: list[int]) -> None:
    automaton = SuffixAutomaton(text)
    walker = automaton.walker()
    for count in range(1, len(more) + 1):
        walker.step(more[count - 1])
        whole = text + more[:count]
        found = text[walker.end - walker.length : walker.end]
        assert found == whole[len(whole) - walker.length :]
        longer = whole[len(whole) - walker.length - 1 :] if walker.length < len(whole) else []
        starts = range(len(text) - len(longer) + 1)
        # A walk may be as long as the whole text's own end, which the text's match excludes.
        assert not longer or count <= 1 or not any(text[s : s + len(longer)] == longer for s in starts)


@given(TEXTS, TEXTS, st.integers(0, 20))
def test_going_along_a_block_ends_where_single_steps_end(
    text: list[int], block: list[int], size: int
) -> None:
    automaton = SuffixAutomaton(text)
    once, singly = automaton.walker(), automaton.walker()
    once.follow(block, 0, size)
    for token in block[:size]:
        singly.step(token)
    once.step(5)
    singly.step(5)
    assert (once.length, once.next_token()) == (singly.length, singly.next_token())


@given(TEXTS, TEXTS, st.integers(0, 20))
def test_agreement_counts_the_common_beginning(one: list[int], other: list[int], size: int) -> None:
    count = agreement(one, 0, other, 0, size)
    assert one[:count] == other[:count]
    assert count <= size
    ends = {size, len(one), len(other)}
    assert count in ends or one[count] != other[count]


def test_a_recent_occurrence_is_preferred_to_the_first() -> None:
    automaton = SuffixAutomaton([1, 2, 3, 9, 1, 2, 4, 9, 1, 2])
    assert automaton.match_length == 3
    automaton.append(4)
    assert automaton.text[automaton.match_end] == 9
    assert SuffixAutomaton([1, 2, 3, 8, 1, 2, 4, 7, 1, 2]).walker().next_token() == 4


def test_separators_stop_what_may_be_copied() -> None:
    automaton = SuffixAutomaton([1, 2, 3, -1, 1, 2])
    assert automaton.walker().upcoming(5) == [3]


def test_what_the_text_holds_is_covered_and_what_it_does_not_is_not() -> None:
    automaton = SuffixAutomaton(range(100))
    assert automaton.covers(list(range(20, 60)), 8)
    assert automaton.covers([*range(20, 60), 777, 778], 8)
    assert not automaton.covers([*range(20, 40), *range(777, 787)], 8)
    assert not automaton.covers(list(range(60, 20, -1)), 8)
    assert automaton.covers([], 8)


def test_states_grow_linearly_on_the_worst_texts() -> None:
    for text in ([7] * 4000, [0, 1] * 2000, list(range(4000)), [n % 97 for n in range(4000)]):
        assert SuffixAutomaton(text).states <= 2 * len(text)


def test_a_text_of_20000_tokens_holds_less_than_4_megabytes() -> None:
    """A vocabulary as skewed as that of code, and lines that come back with changes: 1.5 states a token."""
    draw = random.Random(3)
    lines = [[int(draw.paretovariate(0.7)) % 4000 for _ in range(12)] for _ in range(900)]
    text: list[int] = []
    while len(text) < 20_000:
        line = list(draw.choice(lines))
        line[draw.randrange(12)] = draw.randrange(4000)
        text += line
    tracemalloc.start()
    try:
        automaton = SuffixAutomaton(text)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert automaton.states > 1.3 * len(text)
    assert max(held, most) < 4e6
