"""The whole proposer: its contract on any output, and the edits that it must see through."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proposer_kit import EDITS, indented, renamed, run, source, written_by

from benchmarks.oracle import PieceTokenizer
from specclient_engine.api import Draft, Proposer
from specclient_engine.proposers import AcceptanceTable, build_proposer

ALPHABET = "ab_ (\n\r\t.é日1"
NOTHING = Draft((), (), ())


class EndingTokenizer(PieceTokenizer):
    """A tokenizer whose first token is the end of an answer."""

    eos_ids = frozenset({0})

    def __init__(self) -> None:
        super().__init__()
        self.encode("\x04")

    def token_bytes(self, token_id: int) -> bytes:
        return b"" if token_id == 0 else super().token_bytes(token_id)


def feed(proposer: Proposer, ids: list[int]) -> None:
    """Let the target write `ids` one by one, undrafted."""
    for token in ids:
        proposer.commit([token], NOTHING, 0)


@given(
    st.text(ALPHABET, max_size=30),
    st.lists(st.text(ALPHABET, max_size=40), max_size=2),
    st.text(ALPHABET, max_size=60),
    st.integers(0, 12),
    st.randoms(use_true_random=False),
)
def test_any_output_is_followed_and_no_limit_is_passed(
    prompt: str, predictions: list[str], written: str, limit: int, draw: random.Random
) -> None:
    tokenizer = PieceTokenizer()
    proposer = build_proposer(tokenizer.encode(prompt), predictions, tokenizer)
    target = tokenizer.encode(written)
    done = 0
    while done < len(target):
        draft = proposer.propose(limit)
        assert len(draft.tokens) == len(draft.sources) == len(draft.confidence) <= limit
        assert all(token >= 0 for token in draft.tokens)
        assert all(0.0 < value <= 1.0 for value in draft.confidence)
        assert set(draft.sources) <= {"prediction", "suffix"}
        size = draw.randint(0, len(draft.tokens))
        accepted = written_by(draft.tokens[:size], target[done:])
        proposer.commit(target[done : done + accepted + 1], draft, accepted)
        done += accepted + 1


@given(st.text("abc \n(", min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_how_the_output_was_cut_into_passes_leaves_no_trace(text: str, draw: random.Random) -> None:
    """Learning aside, the state depends on what was written, not on who drafted what."""
    tokenizer = PieceTokenizer()
    target = tokenizer.encode(text)
    whole = build_proposer([], [text, text[::-1]], tokenizer, table=AcceptanceTable())
    parts = build_proposer([], [text, text[::-1]], tokenizer, table=AcceptanceTable())
    feed(whole, target)
    done = 0
    while done < len(target):
        size = draw.randint(1, 4)
        parts.commit(target[done : done + size], NOTHING, 0)
        done += size
    assert whole.propose(8) == parts.propose(8)


@pytest.mark.parametrize("name", EDITS)
def test_each_kind_of_edit_needs_few_passes(name: str) -> None:
    """Passes beyond those of copying, summed over five files: what each kind of edit may cost."""
    allowed = {
        "verbatim": 0,
        "inserted": 110,
        "deleted": 28,
        "renamed": 80,
        "indented": 82,
        "to CRLF": 50,
        "fenced": 42,
    }
    copying = spent = 0
    for seed in range(5):
        text = source(seed)
        copying += run(text, text).passes
        spent += run(text, EDITS[name](text)).passes
    assert spent - copying <= allowed[name]


def test_a_learnt_rename_beats_copying_with_corrections() -> None:
    """Without the rule, every occurrence would cost a pass."""
    text = source(3, functions=30)
    outcome = run(text, renamed(text))
    occurrences = renamed(text).count("brandnew")
    assert occurrences > 20
    assert outcome.passes < run(text, text).passes + occurrences


def test_a_learnt_indent_beats_copying_with_corrections() -> None:
    text = source(4, functions=30)
    lines = sum(line.startswith("    ") for line in indented(text).split("\n")[len(text.split("\n")) // 2 :])
    assert lines > 60
    assert run(text, indented(text)).passes < run(text, text).passes + lines // 2


def test_other_token_boundaries_are_bridged_by_characters() -> None:
    """The target writes `word_word` as one token where the file has three."""

    class Merging(PieceTokenizer):
        def token_bytes(self, token_id: int) -> bytes:
            return b" alpha_beta" if token_id == 500 else super().token_bytes(token_id)

    tokenizer = Merging()
    text = "from math import pi\nx = alpha_beta + gamma(delta)\nprint(x)\n"
    proposer = build_proposer([], [text], tokenizer)
    feed(proposer, [*tokenizer.encode("from math import pi\nx ="), 500])
    assert proposer.propose(4).tokens == tuple(tokenizer.encode(" + gamma(")[:4])


def test_the_end_of_the_answer_is_foreseen() -> None:
    tokenizer = EndingTokenizer()
    proposer = build_proposer([0, *tokenizer.encode("do it")], ["one two\n"], tokenizer)
    assert proposer.propose(8).tokens == (*tokenizer.encode("one two\n"), 0)


def test_without_predictions_the_output_repeats_itself() -> None:
    tokenizer = PieceTokenizer()
    proposer = build_proposer(tokenizer.encode("say it"), [], tokenizer)
    feed(proposer, tokenizer.encode("one two three four. one two three"))
    draft = proposer.propose(1)
    assert draft.tokens == tuple(tokenizer.encode(" four"))
    assert draft.sources == ("suffix",)


def test_the_better_of_two_predictions_is_used() -> None:
    wrong, right = source(1), source(2)
    tokenizer = PieceTokenizer()
    proposer = build_proposer([], [wrong, right], tokenizer)
    target = tokenizer.encode(right)
    feed(proposer, target[:40])
    assert proposer.propose(16).tokens == tuple(target[40:56])


def test_unpredictable_text_stops_the_drafting() -> None:
    """With the reference curve a few rows are free; beyond those nothing is wasted on noise."""
    draw = random.Random(5)
    noise = " ".join(draw.choice("bcdfghjklm") * draw.randint(1, 9) for _ in range(600))
    outcome = run(source(6), noise)
    assert outcome.seconds <= outcome.plain_seconds * 1.03


def test_work_for_each_token_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: comparisons of the place search and characters tokenised, per token."""
    from specclient_engine.proposers.known_text import KnownText

    counts = {"match": 0, "characters": 0}
    plain_match, plain_encode = KnownText._match_length, PieceTokenizer.encode_with_offsets

    def match(self: KnownText, place: int, output: list[int]) -> int:
        length = plain_match(self, place, output)
        counts["match"] += length
        return length

    def encode(self: PieceTokenizer, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        counts["characters"] += len(text)
        return plain_encode(self, text)

    monkeypatch.setattr(KnownText, "_match_length", match)
    monkeypatch.setattr(PieceTokenizer, "encode_with_offsets", encode)
    rates = []
    for functions in (20, 160):
        text = source(7, functions)
        after = renamed(text).replace("return", "yield")
        counts.update(match=0, characters=0)
        tokens = run(text, after).tokens
        rates.append((counts["match"] / tokens, counts["characters"] / tokens))
    for small, large in zip(*rates, strict=True):
        assert large <= 1.5 * small + 1
