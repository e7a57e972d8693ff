"""What one request wrote helps the next, within bounds."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from proposer_kit import run, source

from benchmarks.oracle import PieceTokenizer
from specclient_engine.proposers import AcceptanceTable, memory
from specclient_engine.proposers.contexts import (
    BEFORE_INDENT,
    BEHIND_INDENT,
    NOTHING,
    WITHIN,
    Line,
    LineContexts,
    Successors,
    between,
    forget_half,
    latest,
    note,
    settled,
)
from specclient_engine.proposers.memory import Memories, Memory
from specclient_engine.proposers.vocabulary import BLANK, BREAK, FACTOR, OPEN, SPACED, WORD, Vocabulary


def line(*tokens: int) -> Line:
    written = Line()
    for token in tokens:
        written.push(token, 0, ((True, FACTOR, token + 1),))
    return written


def followed(*tokens: int) -> int:
    """The entry of a context that these followed."""
    known: Successors = {}
    for token in tokens:
        note(known, 1, token)
    return known[1]


def learn(known: Memory, written: Line, token: int) -> None:
    known.learn(written, written.keys(), token)


def votes(known: Memory, written: Line) -> dict[str | int, int]:
    """The guesses of `known` by kind, for a request that knows nothing itself."""
    return {key[0]: token for token, key in known.votes(written, written.keys(), (None, None, None))}


def test_more_tokens_say_more_than_fewer() -> None:
    known = Memory()
    learn(known, line(8, 1, 2, 3), 4)
    learn(known, line(9, 9, 2, 3), 5)
    learn(known, line(7, 1, 2, 3), 6)
    assert votes(known, line(8, 1, 2, 3))["memory of four"] == 4
    assert votes(known, line(5, 1, 2, 3))["memory of three"] == 6
    assert votes(known, line(7, 7, 2, 3))["memory of two"] == 6
    assert not {"memory of two", "memory of three"} & votes(known, line(2, 7, 3)).keys()


def test_a_context_that_the_request_knows_itself_is_not_looked_up() -> None:
    known, written = Memory(), line(1, 2, 3)
    learn(known, written, 4)
    here = [None, followed(9), None]
    kinds = {key[0] for _, key in known.votes(written, written.keys(), here)}
    assert kinds == {"memory of four", "memory of word", "memory of shape"}


def test_old_contexts_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 100)
    known = Memory()
    for token in range(250):
        learn(known, line(token, token, token, token), 1)
    assert votes(known, line(249, 249, 249, 249))
    assert not votes(known, line(0, 0, 0, 0))
    assert all(len(kind) <= 100 for kind in (*known._runs, *known._lines))


def test_a_word_that_never_ends_makes_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 100)
    known, written = Memory(), Line()
    for _ in range(1000):
        learn(known, written, 7)
        written.push(7, WORD, ((True, FACTOR, 8),))
    assert max(len(kind) for kind in known._lines) <= 100


def test_what_came_again_outlives_what_came_once() -> None:
    known: Successors = {}
    for context in range(100):
        note(known, context, 7)
    for context in range(0, 100, 5):
        note(known, context, 7)
    kept = forget_half(known)
    assert len(kept) == 50
    assert kept.keys() >= {*range(0, 100, 5), *range(75, 100)}


def test_where_everything_came_again_the_oldest_goes() -> None:
    known: Successors = {}
    for context in (*range(100), *range(100)):
        note(known, context, 7)
    assert list(forget_half(known)) == list(range(50, 100))


def test_a_long_session_holds_less_than_25_megabytes() -> None:
    """The worst there is: hardly any context of any kind ever comes again."""
    draw = random.Random(7)
    tracemalloc.start()
    try:
        known, written = Memory(), Line()
        for step in range(memory.MOST * 3 // 2 + 1000):
            token = draw.randrange(1 << 17)
            learn(known, written, token)
            written.push(token, BREAK if step % 8 == 0 else 0, ((step % 4 > 0, FACTOR, token + 1),))
        assert tracemalloc.get_traced_memory()[1] < 25e6
    finally:
        tracemalloc.stop()
    assert min(len(kind) for kind in (*known._runs, *known._lines)) > memory.MOST // 2


def test_the_second_request_of_a_kind_needs_fewer_passes() -> None:
    table, tokenizer, new = AcceptanceTable(), PieceTokenizer(), source(21)
    first = run(source(20), new, table=table, tokenizer=tokenizer).passes
    assert run(source(22), new, table=table, tokenizer=tokenizer).passes < 0.8 * first
    assert run(source(22), new, tokenizer=tokenizer).passes > 0.9 * first


def test_another_salt_knows_nothing_of_what_was_written() -> None:
    table, tokenizer, new = AcceptanceTable(), PieceTokenizer(), source(21)
    first = run(source(20), new, table=table, tokenizer=tokenizer, salt="a").passes
    for other in ("b", None):
        assert run(source(22), new, table=table, tokenizer=tokenizer, salt=other).passes > 0.9 * first
    assert run(source(22), new, table=table, tokenizer=tokenizer, salt="a").passes < 0.8 * first


def test_each_salt_has_one_memory_also_while_it_is_empty() -> None:
    memories = Memories()
    kept = {salt: memories.of(salt) for salt in (None, "a", "b")}
    assert len({id(memory) for memory in kept.values()}) == 3
    assert all(memories.of(salt) is memory for salt, memory in kept.items())


def test_the_memories_of_other_salts_take_no_more_room_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 100)
    memories = Memories()

    def write(salt: str | None, count: int) -> Memory:
        known = memories.of(salt)
        for token in range(count):
            learn(known, line(token, token, token, token), 1)
        return known

    oldest, full = write("oldest", 10), write(None, 90)
    assert memories.of("newest").size == 0
    assert memories.of(None) is full
    assert memories.of("oldest") is oldest
    write("newest", 90)
    assert memories.of("another").size == 0
    assert memories.of("newest").size == 90
    assert memories.of(None) is not full


def test_salts_that_never_come_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SALTS", 3)
    memories = Memories()
    first, *_, fourth, fifth = [memories.of(str(number)) for number in range(5)]
    assert memories.of("4") is fifth
    assert memories.of("3") is fourth
    assert memories.of("0") is not first


def test_what_was_written_is_not_written_down() -> None:
    table = AcceptanceTable()
    run(source(1), source(2), table=table)
    assert set(table.to_dict()) == {"counts", "blend"}


def test_contexts_know_the_line_they_are_in() -> None:
    contexts, written = LineContexts(), Line()
    for token, flags in ((10, BREAK), (1, WORD), (2, 0), (3, WORD), (4, 0)):
        contexts.learn(written.keys(), token)
        written.push(token, flags, ((True, FACTOR, token + 1),))
    again = Line()
    for token, flags in ((10, BREAK), (1, WORD), (2, 0), (77, WORD | SPACED)):
        again.push(token, flags, ((True, FACTOR, token + 1),))
    assert contexts.entries(again.keys()) == [None, None, followed(4)]


def test_a_line_is_known_alike_whether_its_indent_is_a_token_of_its_own() -> None:
    joined, apart = Line(), Line()
    for token, flags in ((1, WORD), (5, BREAK), (6, WORD), (7, 0)):
        joined.push(token, flags)
    for token, flags in ((1, WORD), (4, BREAK | OPEN), (5, BLANK), (6, WORD), (7, 0)):
        apart.push(token, flags)
    assert (joined.indent, joined.head, joined.place) == (apart.indent, apart.head, apart.place)
    assert joined.keys() == apart.keys()


def test_the_indent_of_the_line_before_is_known_until_the_next_is_written() -> None:
    written = Line()
    places = []
    for token, flags in ((4, BREAK | OPEN), (5, BLANK), (6, WORD), (4, BREAK | OPEN)):
        written.push(token, flags)
        places.append(written.place)
    assert places == [BEFORE_INDENT, BEHIND_INDENT, WITHIN, BEFORE_INDENT]
    assert written.indent == 5
    written.push(8, WORD)
    assert (written.indent, written.head) == (0, 8)


class Pieces(PieceTokenizer):
    """Tokens as they are given."""

    def tokens(self, *texts: str) -> list[int]:
        for text in texts:
            if text not in self._texts:
                self._texts.append(text)
        return [self._texts.index(text) for text in texts]


@pytest.mark.parametrize(
    "other",
    [
        ("x", " =", " pri", "ce", "_total", "("),
        ("x =", " price_total("),
        ("y", "\n", "    x", " = price_", "total", "("),
    ],
)
def test_the_word_context_is_the_same_however_the_text_was_split(other: tuple[str, ...]) -> None:
    pieces = Pieces()
    vocabulary = Vocabulary(pieces)

    def word(*texts: str) -> int:
        written = Line()
        for token in pieces.tokens(*texts):
            written.push(token, vocabulary.flags(token), vocabulary.stretches(token))
        return written.keys()[0]

    assert word("x", " = ", "price", "_total", "(") == word(*other)
    assert word("price", "_tot") == word("a", ".", "price_tot")
    assert word("price", "_tot") != word("price", "_total")
    assert word("f", "(", ")", "\n    ") == word("g", "=", "f", "()\n\n\t")


def test_a_context_keeps_what_else_followed_it() -> None:
    assert (latest(followed(5)), between(followed(5))) == (5, NOTHING)
    assert (latest(followed(5, 5, 6)), between(followed(5, 5, 6))) == (5, 6)
    assert (latest(followed(5, 5, 6, 7)), between(followed(5, 5, 6, 7))) == (7, 5)


@pytest.mark.parametrize(
    ("tokens", "rank"),
    [
        ((5,), 2),
        ((5,) * 5, 10),
        ((5,) * 5000, 10),
        ((5, 6), 1),
        ((5, 6, 6), 3),
        ((5,) * 3 + (6,), 1),
        ((5,) * 9 + (6,), 7),
    ],
)
def test_a_successor_is_relied_on_as_often_as_it_came_in_a_row(tokens: tuple[int, ...], rank: int) -> None:
    assert settled(followed(*tokens)) == rank
    assert latest(followed(*tokens)) == (6 if len(tokens) < 4 and tokens[-1] == 6 else 5)


@pytest.mark.parametrize("token", [0, 1, (1 << 24) - 2])
def test_every_token_id_is_kept_as_it_is(token: int) -> None:
    assert (latest(followed(token)), between(followed(token))) == (token, NOTHING)
    assert (latest(followed(3, 3, token)), between(followed(3, 3, token))) == (3, token)
    assert (latest(followed(token, 3)), between(followed(token, 3))) == (3, token)
