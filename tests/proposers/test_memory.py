"""What one request wrote helps the next, within bounds."""

from __future__ import annotations

import pytest
from proposer_kit import run, source

from benchmarks.oracle import PieceTokenizer
from specclient_engine.proposers import AcceptanceTable, memory
from specclient_engine.proposers.contexts import Line, LineContexts
from specclient_engine.proposers.memory import Memory
from specclient_engine.proposers.vocabulary import BREAK, SPACED, WORD


def line(*tokens: int) -> Line:
    written = Line()
    for token in tokens:
        written.push(token, 0)
    return written


def test_three_tokens_say_more_than_two() -> None:
    known = Memory()
    known.learn(line(1, 2, 3), 4)
    known.learn(line(9, 2, 3), 5)
    assert known.guess(line(1, 2, 3)) == (4, "memory of three", 2)
    assert known.guess(line(7, 2, 3)) == (5, "memory of two", 1)
    assert known.guess(line(2, 7, 3)) is None


def test_old_contexts_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 100)
    known = Memory()
    for token in range(250):
        known.learn(line(token, token, token), 1)
    assert known.guess(line(249, 249, 249)) is not None
    assert known.guess(line(0, 0, 0)) is None
    assert len(known._after_three) <= 101


def test_the_second_request_of_a_kind_needs_fewer_passes() -> None:
    table, tokenizer, new = AcceptanceTable(), PieceTokenizer(), source(21)
    first = run(source(20), new, table=table, tokenizer=tokenizer).passes
    assert run(source(22), new, table=table, tokenizer=tokenizer).passes < 0.8 * first
    assert run(source(22), new, tokenizer=tokenizer).passes > 0.9 * first


def test_what_was_written_is_not_written_down() -> None:
    table = AcceptanceTable()
    run(source(1), source(2), table=table)
    assert set(table.to_dict()) == {"counts", "blend"}


def test_contexts_know_the_line_they_are_in() -> None:
    contexts, written = LineContexts(), Line()
    for token, flags in ((10, BREAK), (1, WORD), (2, 0), (3, WORD), (4, 0)):
        contexts.learn(written, token)
        written.push(token, flags)
    again = Line()
    for token, flags in ((10, BREAK), (1, WORD), (2, 0), (77, WORD | SPACED)):
        again.push(token, flags)
    assert contexts.guesses(again) == [(4, "shape", 2)]
