"""A passage that is repeated with changes, and the changes that come again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from proposer_kit import run

from specclient_engine.proposers.passage import AHEAD, Passage

PATTERN = list(range(100, 140))


def following(*written: int, start: int = 0, run: int = 3) -> Passage:
    """A passage of PATTERN, begun behind `run` repeated tokens, and then what was written."""
    passage = Passage(PATTERN)
    passage.begin(start + run, run)
    for token in written:
        passage.follow(token)
    return passage


def guessed(passage: Passage) -> dict[str, int]:
    return {key[0]: token for token, key in passage.guesses()}


def test_a_passage_goes_on_behind_a_change() -> None:
    assert guessed(following(103)) == {"passage": 104}
    assert guessed(following(103, 7)) == {"passage replaced": 105}
    assert guessed(following(103, 7, 105))["passage again"] == 106
    assert guessed(following(103, 7, 105, 106)) == {"passage": 107}


def test_what_was_left_out_and_what_was_added_are_seen() -> None:
    assert guessed(following(103, 109))["passage again"] == 110
    assert guessed(following(103, 7, 8, 9, 104))["passage again"] == 105


def test_a_change_is_expected_again() -> None:
    text = [1, 2, 3, 50, 4, 5, 6, 50, 7, 8, 0]
    passage = Passage(text)
    passage.begin(3, 3)
    for token in (60, 4, 5, 6):
        passage.follow(token)
    assert list(passage.guesses()) == [(60, ("passage changed", 3))]


def test_a_draft_leaves_the_passage_as_it_was() -> None:
    passage = following(103, 7)
    draft = passage.copy()
    for token in (105, 106, 7, 108, 109):
        draft.follow(token)
    assert guessed(passage) == {"passage replaced": 105}
    assert guessed(draft) == {"passage": 110}


def test_a_lost_passage_is_left_for_a_longer_one_and_a_held_one_is_kept() -> None:
    held = following(103)
    held.begin(20, 4)
    assert guessed(held) == {"passage": 104}
    lost = following(103, 7)
    lost.begin(20, 5)
    assert guessed(lost) == {"passage": 120}


@given(st.lists(st.integers(-1, 6), max_size=40), st.lists(st.integers(0, 6), max_size=60), st.data())
def test_any_output_is_followed(text: list[int], written: list[int], data: st.DataObject) -> None:
    passage = Passage(text)
    for token in written:
        if data.draw(st.booleans()):
            passage.begin(data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 9)))
        assert all(guess >= 0 for guess, _ in passage.guesses())
        passage.follow(token)
        assert len(passage._written) <= len(written)


def test_a_place_is_looked_for_within_bounds() -> None:
    assert guessed(following(103, 104 + AHEAD - 1)) != {}
    assert "passage again" not in guessed(following(103, 104 + AHEAD))


def test_functions_written_alike_cost_little_more_than_their_names() -> None:
    """Each is the one before with another name, which comes three times: a pass each for it and the rest."""
    names = [one + other for one in "bcdfgh" for other in "aeiou"]
    text = "".join(
        f"def check_{name}(self):\n    value = self.make({name})\n    self.compare({name}, value)\n\n"
        for name in names
    )
    assert run("nothing like it", text).passes < 2.5 * len(names)
