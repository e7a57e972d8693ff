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
    here = [None, [9, 1, 0], None]
    kinds = {key[0] for _, key in known.votes(written, written.keys(), here)}
    assert kinds == {"memory of four", "memory of token", "memory of shape"}


def test_old_contexts_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 100)
    known = Memory()
    for token in range(250):
        learn(known, line(token, token, token, token), 1)
    assert votes(known, line(249, 249, 249, 249))
    assert not votes(known, line(0, 0, 0, 0))
    assert all(len(run) <= 101 for run in known._runs)


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
        contexts.learn(written.keys(), token)
        written.push(token, flags)
    again = Line()
    for token, flags in ((10, BREAK), (1, WORD), (2, 0), (77, WORD | SPACED)):
        again.push(token, flags)
    assert contexts.entries(again.keys()) == [None, None, [4, 1, 0]]
