"""A draft model may be right or wrong: the output is the target's, and the draft's cache is its own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from engine_kit import VOCAB, Bench, RecordingRunner, draft_of, tiny_model
from test_tokenizer import byte_fallback, byte_level, save

from specclient_engine import SamplingParams
from specclient_engine.api import Draft
from specclient_engine.cost import CostCurve
from specclient_engine.drafters.draft_model import DraftModel, DraftModelProposer
from specclient_engine.drafters.economy import Economy
from specclient_engine.drafters.fallback import FallbackProposer
from specclient_engine.drafters.loading import check_draft_model
from specclient_engine.errors import ContextTooLong, NotEnoughMemory, UnsupportedRequest
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.sampling import Sampler

PROMPT = list(range(30))
ITSELF, ANOTHER = 0, 1


class Clockless(Economy):
    """Drafting costs what the test says, of a target's pass of one second."""

    def __init__(self, seconds: float) -> None:
        super().__init__("draft_model", CostCurve([1, 65], [1.0, 1.01]))
        self.seconds = seconds

    def timed(self, seconds: float) -> None: ...


def drafting(runner: Any, seconds: float = 0.01) -> DraftModel:
    return DraftModel(runner, Clockless(seconds), VOCAB)


def bench_with(model: DraftModel, **sizes: Any) -> Bench:
    bench = Bench(PlainRunner(tiny_model(**sizes)), prefill_chunk=512)
    bench.proposer = model.proposer_for
    bench.release = model.release
    return bench


@pytest.mark.parametrize("seed", [ITSELF, ANOTHER])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_output_is_the_targets_and_a_perfect_draft_is_accepted_whole(
    seed: int, temperature: float
) -> None:
    runner = RecordingRunner(PlainRunner(tiny_model(seed=seed)))
    bench = bench_with(drafting(runner))
    sampling = SamplingParams(temperature=temperature, top_p=0.95, seed=5)
    plain = bench.plain(PROMPT, max_tokens=60, ignore_eos=True, sampling=sampling)
    answer = bench.ask(PROMPT, max_tokens=60, ignore_eos=True, sampling=sampling)
    assert answer.token_ids == plain.token_ids
    drafted, accepted = answer.stats.by_source["draft_model"]
    assert drafted > 0
    if seed == ITSELF:
        assert accepted == drafted
        assert answer.stats.forward_passes < 10
    assert not runner.live
    bench.engine.close()


def test_its_cache_is_that_of_the_confirmed_text_after_any_rejection() -> None:
    runner = PlainRunner(tiny_model(seed=ANOTHER))
    slot = runner.allocate(250)
    proposer = DraftModelProposer(drafting(runner), slot, PROMPT, Sampler(SamplingParams(), ()))
    dice = random.Random(2)
    text = list(PROMPT)
    for _ in range(12):
        draft = proposer.propose(8)
        slot = runner.allocate(250)
        assert draft.tokens[0] == int(runner.forward([Chunk(slot, 0, text, len(text) - 1)])[0].argmax())
        runner.release(slot)
        right = dice.randint(0, len(draft.tokens))
        tokens = [*draft.tokens[:right], dice.randrange(VOCAB)]
        proposer.commit(tokens, draft, right)
        text += tokens


def test_a_draft_model_that_costs_more_than_it_saves_is_left_alone() -> None:
    runner = RecordingRunner(PlainRunner(tiny_model(seed=ANOTHER)))
    bench = bench_with(drafting(runner, seconds=5.0))
    bench.ask(PROMPT, max_tokens=60, ignore_eos=True)
    # Tried once in 33 steps, one token at a time.
    assert len(runner.passes) == 1
    bench.engine.close()


def test_a_long_prompt_is_read_in_pieces_between_the_targets_passes() -> None:
    long = {"max_position_embeddings": 2048}
    runner = RecordingRunner(PlainRunner(tiny_model(**long)))
    bench = bench_with(drafting(runner), **long)
    prompt = [number % 250 for number in range(1300)]
    plain = bench.plain(prompt, max_tokens=20, ignore_eos=True)
    assert bench.ask(prompt, max_tokens=20, ignore_eos=True).token_ids == plain.token_ids
    assert [chunks[0][:2] for chunks in runner.passes[:2]] == [(0, 512), (512, 512)]
    assert max(chunk[1] for chunks in runner.passes for chunk in chunks) == 512
    bench.engine.close()


def test_without_room_for_a_second_cache_the_reason_is_given() -> None:
    runner = PlainRunner(tiny_model(), max_context=64)
    model = drafting(runner)
    bench = bench_with(model)
    for error, room in ((ContextTooLong, 60), (NotEnoughMemory, 10)):
        refusals: list[Exception] = []

        def remember(state: Any, refusals: list[Exception] = refusals) -> Any:
            try:
                return model.proposer_for(state)
            except Exception as refusal:
                refusals.append(refusal)
                raise

        bench.proposer = remember
        answer = bench.ask(PROMPT, max_tokens=room, ignore_eos=True)
        assert len(answer.token_ids) == room
        assert answer.stats.by_source == {}
        assert isinstance(refusals[0], error)
        runner.token_capacity = 20
    bench.engine.close()


def test_known_text_goes_first_and_each_learns_from_its_own_draft() -> None:
    class Guesser:
        def __init__(self, *drafts: Draft) -> None:
            self.drafts = list(drafts)
            self.learnt: list[tuple[list[int], tuple[int, ...], int]] = []

        def propose(self, limit: int) -> Draft:
            return self.drafts.pop(0)

        def commit(self, tokens: Any, drafted: Draft, accepted: int) -> None:
            self.learnt.append((list(tokens), drafted.tokens, accepted))

    unsure = Draft((1, 2), ("suffix",) * 2, (0.2, 0.9))
    first = Guesser(draft_of([1, 2]), unsure, unsure)
    second = Guesser(draft_of([7, 8], "draft_model"), Draft((), (), ()))
    both = FallbackProposer(first, second)
    assert both.propose(5).tokens == (1, 2)
    both.commit([1, 9], draft_of([1, 2]), 1)
    assert both.propose(5).tokens == (7, 8)
    both.commit([7, 8, 3], draft_of([7, 8]), 2)
    assert both.propose(5).tokens == (1, 2)
    both.commit([1], unsure, 1)
    assert first.learnt == [([1, 9], (1, 2), 1), ([7, 8, 3], (1, 2), 0), ([1], (1, 2), 1)]
    assert second.learnt == [([1, 9], (), 0), ([7, 8, 3], (7, 8), 2), ([1], (), 0)]


def test_a_draft_model_of_another_vocabulary_or_without_a_way_back_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    target = save(byte_level(), tmp_path / "a")
    save(byte_fallback(), tmp_path / "b")
    rolling, staying = PlainRunner(tiny_model()), PlainRunner(tiny_model("mamba", state_size=8))
    check_draft_model(tmp_path / "a", rolling, target)
    with pytest.raises(UnsupportedRequest, match="another vocabulary"):
        check_draft_model(tmp_path / "b", rolling, target)
    with pytest.raises(UnsupportedRequest, match="recurrent"):
        check_draft_model(tmp_path / "a", staying, target)
