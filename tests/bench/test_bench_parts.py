"""The parts of a measurement that need no model: cases, order, intervals, verdicts, meters, the file."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from bench_samples import samples

from specclient.bench import summary
from specclient.bench.cases import Case, built_in, from_jsonl
from specclient.bench.meters import Meters
from specclient.bench.schedule import blocks
from specclient.bench.stats import clustered, crossed, estimate
from specclient.bench.summary import summarise
from specclient.bench.texts import BUILT_IN
from specclient.bench.words import rows, speculation_text
from specclient.errors import ConfigError

CASES = [Case(f"{work}{number}", work, {"messages": []}, "x") for work in "ab" for number in range(3)]


@pytest.fixture(scope="module", autouse=True)
def drawn_once() -> Iterator[None]:
    """The summaries of these tests hold mostly the same figures: the same interval is resampled once."""

    def kept(function: Callable[..., Any]) -> Callable[..., Any]:
        remembered = cache(function)
        return lambda values, *, seed: remembered(tuple(values), seed=seed)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("crossed", "estimate"):
            patch.setattr(summary, name, kept(getattr(summary, name)))
        yield


def test_built_in_workloads_are_five_and_every_case_has_known_text() -> None:
    assert set(BUILT_IN) == {"code_edit", "chat", "summary", "extraction", "creative"}
    cases = built_in()
    assert len({case.name for case in cases}) == len(cases)
    assert min(Counter(case.workload for case in cases).values()) >= 3
    assert all(case.prediction and case.request["messages"] for case in cases)
    with pytest.raises(ConfigError, match="No built-in workload"):
        built_in(["nope"])


def test_a_file_of_requests_is_read(tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    lines = [
        {"messages": [{"role": "user", "content": "a"}], "prediction": "known", "model": "x", "stream": True},
        {"messages": [], "prediction": {"type": "content", "content": "k"}, "workload": "w", "id": "one"},
        {"messages": [], "seed": 7},
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    first, second, third = from_jsonl(path)
    assert (first.workload, first.prediction) == ("traffic", "known")
    assert set(first.request) == {"messages"}
    assert (second.name, second.workload, second.prediction) == ("one", "w", "k")
    assert (third.prediction, third.request["seed"]) == (None, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: not JSON"),
        ('{"messages": []}\n[1]', "line 2: a request is"),
        ('{"messages": [], "prediction": 3}', "line 1: prediction is"),
        ('{"messages": [], "id": 1}\n{"messages": [], "id": 1}', "'1' is there twice"),
        ("\n", "holds no request"),
    ],
)
def test_a_bad_file_names_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "f.jsonl").write_text(text)
    with pytest.raises(ConfigError, match=words):
        from_jsonl(tmp_path / "f.jsonl")


def test_arms_are_paired_side_by_side_in_drawn_order() -> None:
    order = blocks(CASES, clients=(1,), repeats=4, seed=3)
    firsts: Counter[str] = Counter()
    for one, two in zip(order[::2], order[1::2], strict=True):
        assert {one.arm, two.arm} == {"without", "with"}
        assert [t.case for t in one.trials] == [t.case for t in two.trials]
        firsts[one.arm] += 1
    assert min(firsts.values()) > 5
    keys = [trial.key for block in order for trial in block.trials]
    assert len(set(keys)) == len(keys) == 6 * 2 * 4
    assert (
        order
        == blocks(CASES, clients=(1,), repeats=4, seed=3)
        != blocks(CASES, clients=(1,), repeats=4, seed=4)
    )


def test_many_clients_fill_their_blocks_with_one_workload() -> None:
    order = blocks(CASES, clients=(4,), repeats=2, seed=0)
    assert {len(block.trials) for block in order} == {4}
    assert all(len({trial.case.workload for trial in block.trials}) == 1 for block in order)
    keys = [trial.key for block in order for trial in block.trials]
    assert len(set(keys)) == len(keys)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    draw = random.Random(1)
    covered = 0
    for trial in range(60):
        found = estimate([draw.gauss(10, 2) for _ in range(30)], seed=trial)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 10 <= found.high
    assert covered >= 52


def test_repeats_of_few_cases_do_not_count_as_many_cases() -> None:
    draw = random.Random(2)
    centres = [draw.gauss(10, 3) for _ in range(4)]
    values = {str(c): [draw.gauss(c, 0.1) for _ in range(25)] for c in centres}
    together = clustered(values)
    apart = estimate([value for group in values.values() for value in group])
    assert together is not None
    assert apart is not None
    assert together.high - together.low > 2 * (apart.high - apart.low)  # type: ignore[operator]


def test_too_few_values_get_no_interval() -> None:
    assert estimate([]) is None
    few = estimate([1.0, 2.0])
    assert few is not None
    assert (few.value, few.low, few.count) == (1.5, None, 2)


@pytest.mark.parametrize(
    ("gain", "decision"), [(3.0, "use it"), (0.7, "do not"), (1.0, "not enough evidence")]
)
def test_the_verdict_follows_the_interval(gain: float, decision: str) -> None:
    (group,) = summarise(samples(gain))
    assert group.decision == decision
    assert group.gain is not None
    assert group.gain.low is not None
    assert group.gain.high is not None
    assert group.gain.low <= gain * 1.03
    assert group.gain.high >= gain * 0.97


def test_the_figures_of_a_group() -> None:
    (group,) = summarise(samples(2.0))
    assert (group.pairs, group.cases) == (20, 4)
    assert group.acceptance_rate == 0.8
    assert group.acceptance_length is not None
    assert group.acceptance_length.value == 5.0
    assert group.identical == 1.0
    assert group.predicted.joules_per_token is not None
    assert group.predicted.joules_per_token.value == pytest.approx(50 / 101)
    assert group.without.per_token is not None
    assert group.without.per_token.value == pytest.approx(0.008, rel=0.06)
    for name, share in (("draft", 0.1), ("verify", 0.6), ("overhead", 0.1)):
        part = getattr(group.predicted, name)
        assert part.value == pytest.approx(group.predicted.per_token.value * share / 0.8)  # type: ignore[union-attr]
    assert group.not_measured == ()


def test_little_evidence_is_called_so() -> None:
    assert summarise(samples(3.0, cases=1))[0].decision == "not enough evidence"
    assert summarise(samples(3.0, cases=2))[0].decision == "not enough evidence"
    failed = summarise(samples(3.0, error="RateLimitError"))[0]
    assert failed.decision == "not enough evidence"
    assert failed.without.failed == 20


def test_a_withheld_prediction_proves_nothing() -> None:
    (group,) = summarise(samples(3.0, outcome="withheld"))
    assert group.decision == "not enough evidence"
    assert "cannot take the prediction" in group.because


def test_what_was_not_reported_is_said_and_is_no_zero() -> None:
    (group,) = summarise(
        samples(2.0, decode=None, prefill=None, queue=None, accepted=None, receive=0.5, verify_seconds=None)
    )
    assert group.predicted.decode is None
    assert group.acceptance_rate is None
    text = "; ".join(group.not_measured)
    assert "decode: the endpoint does not report it" in text
    assert "as the client saw it" in text
    assert "overhead apart" in text


def test_an_answer_in_one_piece_tells_no_time_a_token() -> None:
    (group,) = summarise(samples(2.0, decode=None, receive=0.0))
    assert (group.predicted.per_token, group.decode_gain) == (None, None)
    assert "a validated token" not in [row.label for row in rows(group)]


def test_energy_is_read_where_it_can_be_and_missing_else(tmp_path: Path) -> None:
    assert any("no RAPL" in gap for gap in Meters.find(tmp_path).missing)
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    (zone / "energy_uj").write_text("9000000")
    (zone / "max_energy_range_uj").write_text("10000000")
    meters = Meters.find(tmp_path)
    before = {"rapl:intel-rapl:0": meters.read()["rapl:intel-rapl:0"]}
    (zone / "energy_uj").write_text("1000000")
    assert meters.between(before, meters.read()) == pytest.approx(2.0)
    assert meters.between({}, {}) is None


def test_calls_of_one_moment_do_not_count_as_many() -> None:
    """Four clients at once share whatever the machine did at that moment."""
    draw = random.Random(4)
    covered, trials = 0, 60
    for trial in range(trials):
        values = []
        for block in range(10):
            moment = draw.gauss(1, 0.2)
            values += [(f"c{n % 3}", f"b{block}", moment + draw.gauss(0, 0.02)) for n in range(4)]
        found = crossed(values, seed=trial)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1 <= found.high
    assert covered >= 0.85 * trials


def test_few_rounds_of_many_clients_are_called_so() -> None:
    many = [replace(sample, block=f"b{sample.repeat % 3}") for sample in samples(3.0)]
    (group,) = summarise(many)
    assert (group.decision, group.because) == (
        "not enough evidence",
        "20 pairs that ran in 3 rounds are too few",
    )


def test_two_arms_that_were_the_same_prove_nothing() -> None:
    (group,) = summarise(samples(3.0, outcome="via_prompt", reasons=("in_prompt",)))
    assert group.decision == "not enough evidence"
    assert "both arms were the same" in group.because
    (group,) = summarise(samples(3.0, outcome="via_prompt", reasons=("put_in_prompt",)))
    assert (group.decision, group.prompts_differ) == ("use it", True)


def test_the_endpoints_own_drafting_is_told_and_owned_up_to() -> None:
    (group,) = summarise(
        samples(2.0, accepted=None, drafted=50, accepted_draft=20, forward_passes=None, acceptance_length=3.5)
    )
    told = dict(speculation_text(group))
    assert told["accepted"] == "40% of the tokens that the endpoint drafted"
    assert told["acceptance length"] == "3.50 tokens a pass"
    assert any("drafts in both arms" in gap for gap in group.not_measured)


def test_the_engines_own_drafting_is_told_as_what_one_gets_without_a_prediction() -> None:
    (group,) = summarise(samples(2.0, drafted=50, phases_by="engine"))
    (gap,) = group.not_measured
    assert gap == "plain decoding: without a prediction the engine drafts from the prompt and its answer"


def test_what_nobody_reported_has_no_row() -> None:
    (group,) = summarise(samples(2.0, queue=None, joules=None))
    labels = [row.label for row in rows(group)]
    assert "queue" not in labels
    assert "energy a token" not in labels
    assert "decode" in labels
