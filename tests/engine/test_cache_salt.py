"""What a request leaves behind is used under its own salt only, and answers do not depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from engine_kit import Answer, Bench, ByteTokenizer, FullLength, RecordingRunner, tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st

from specclient_engine import Engine, GenerationRequest
from specclient_engine.cost import CostCurve
from specclient_engine.errors import UnsupportedRequest
from specclient_engine.loading import speculation_tools
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.slot_pool import Slot

PROMPT = [(3 * number) % 250 for number in range(70)]
PROMPTS = (PROMPT, [*PROMPT[:40], 9, *PROMPT[41:]], PROMPT[:20], [7] * 33)
SALTS = (None, "a", "b")


def test_only_the_same_salt_finds_a_prompt_in_the_cache(bench: Bench) -> None:
    first = bench.plain(PROMPT, max_tokens=9, cache_salt="a")
    for salt, reused in (("b", 0), (None, 0), ("a", 64), (None, 64), ("b", 64), ("A", 0)):
        answer = bench.plain(PROMPT, max_tokens=9, cache_salt=salt)
        assert answer.stats.cached_tokens == reused, salt
        assert answer.token_ids == first.token_ids


def test_requests_that_run_side_by_side_keep_their_salts(bench: Bench) -> None:
    def ask(salt: str | None) -> Any:
        return bench.engine.submit(GenerationRequest(prompt_ids=PROMPT, max_tokens=9, cache_salt=salt))

    first = [Answer.read(handle) for handle in [ask(salt) for salt in ("a", "b")]]
    again = [Answer.read(handle) for handle in [ask(salt) for salt in ("a", "c", "b")]]
    assert [answer.stats.cached_tokens for answer in first] == [0, 0]
    assert [answer.stats.cached_tokens for answer in again] == [64, 0, 64]
    assert all(answer.token_ids == first[0].token_ids for answer in (*first, *again))


def whole_pieces(prompt: list[int], other: list[int]) -> int:
    """Tokens that the two begin with, in the bench's pieces of 16; the prompt's last is computed anyway."""
    common = [ours == its for ours, its in zip(prompt[:-1], other, strict=False)]
    return ([*common, False].index(False)) // 16 * 16


@pytest.fixture(scope="module")
def answers(tiny_runner: PlainRunner) -> list[list[int]]:
    """What follows each of the prompts, where nothing was asked before."""
    bench = Bench(tiny_runner)
    with bench.engine:
        return [
            bench.plain(prompt, max_tokens=5, cache_salt=str(at)).token_ids
            for at, prompt in enumerate(PROMPTS)
        ]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(asked=st.lists(st.tuples(st.integers(0, len(PROMPTS) - 1), st.sampled_from(SALTS)), max_size=12))
def test_nothing_is_reused_but_what_the_same_salt_left(
    tiny_runner: PlainRunner, answers: list[list[int]], asked: list[tuple[int, str | None]]
) -> None:
    bench = Bench(tiny_runner)
    with bench.engine:
        for at, (which, salt) in enumerate(asked):
            prompt, earlier = PROMPTS[which], asked[:at]
            answer = bench.plain(prompt, max_tokens=5, cache_salt=salt)
            own = [whole_pieces(prompt, PROMPTS[other]) for other, theirs in earlier if theirs == salt]
            assert answer.stats.cached_tokens <= max(own, default=0)
            if earlier and earlier[-1] == (which, salt):
                assert answer.stats.cached_tokens == whole_pieces(prompt, prompt)
            assert answer.token_ids == answers[which]


@pytest.fixture
def remembering() -> Iterator[Engine]:
    """An engine that drafts as loaded ones do, in full length; it remembers from request to request."""
    tools = replace(speculation_tools(ByteTokenizer(), CostCurve([1], [0.001])), lengths=FullLength())  # type: ignore[arg-type]
    with Engine(RecordingRunner(PlainRunner(tiny_model())), ByteTokenizer(), tools) as engine:
        yield engine


def test_what_was_written_is_drafted_under_the_same_salt_only(remembering: Engine) -> None:
    def ask(salt: str | None) -> Answer:
        request = GenerationRequest(prompt_ids=[1, 2, 3], max_tokens=60, ignore_eos=True, cache_salt=salt)
        return Answer.read(remembering.submit(request))

    answers = {
        name: ask(salt) for name, salt in (("new", "a"), ("again", "a"), ("other", "b"), ("none", None))
    }
    passes = {name: answer.stats.forward_passes for name, answer in answers.items()}
    accepted = {
        name: sum(hits for _, hits in answer.stats.by_source.values()) for name, answer in answers.items()
    }
    assert passes["again"] < passes["other"]
    assert accepted["new"] == accepted["other"] == accepted["none"] < accepted["again"]
    assert len({tuple(answer.token_ids) for answer in answers.values()}) == 1


def test_a_salt_shows_in_no_repr() -> None:
    request = GenerationRequest(prompt_ids=[1], cache_salt="sesame")
    assert "sesame" not in repr(request)
    assert "sesame" not in repr(Slot(0, 9, salt="sesame"))


@pytest.mark.parametrize("salt", ["", b"sesame", 7, False, ["sesame"]])
def test_what_is_no_salt_is_refused_and_not_shown(bench: Bench, salt: Any) -> None:
    with pytest.raises(UnsupportedRequest, match=r"^cache_salt is a string that is not empty") as caught:
        bench.ask(cache_salt=salt)
    assert "sesame" not in str(caught.value)
