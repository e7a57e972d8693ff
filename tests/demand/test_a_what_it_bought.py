"""A: what a prediction bought and cost, as far as the answer says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.demand.predicting import KNOWN, WILLISON, ask, at
from tests.doors import SyncDoor
from tests.server import chunk, completion, finish, reply, sse, usage_chunk


def test_a8_a9_what_it_cost(door: SyncDoor) -> None:
    at(door, "openai", "gpt-4o", prices={"input": 2.5, "output": 10.0})
    report = ask(door, reply(completion(usage=WILLISON)))
    got = report.prediction
    assert (got.accepted_tokens, got.rejected_tokens, got.extra_billed_tokens) == (49, 107, 107)
    assert report.usage.completion == 226, "billed"
    assert report.usage.completion - got.extra_billed_tokens == 119, "visible"
    assert got.acceptance_rate == 49 / 156
    assert (got.effect, got.source) == ("used", "provider_usage")
    assert report.economics.money_added == pytest.approx(107 * 10.0 / 1e6)


NULLS = {
    "A12": {
        "completion_tokens_details": {"accepted_prediction_tokens": None, "rejected_prediction_tokens": None}
    },
    "A12-no-pair": {"completion_tokens_details": {"reasoning_tokens": 0}},
    "A12-null-details": {"completion_tokens_details": None},
    "A12-no-details": {},
    "A12-nonsense": {"completion_tokens_details": {"accepted_prediction_tokens": "many"}},
    "A12-list": {"completion_tokens_details": []},
}


@pytest.mark.parametrize("details", NULLS.values(), ids=NULLS)
@pytest.mark.parametrize("provider", ["deepseek", "fireworks", "openai_compatible"])
def test_null_is_not_zero_and_costs_no_answer(door: SyncDoor, provider: str, details: dict[str, Any]) -> None:
    at(door, provider)
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7} | details
    for answer in (reply(completion("Hi", usage=usage)), sse(chunk("Hi"), finish(), usage_chunk(**usage))):
        door.server.play(answer)
    plain = door.create(prediction=KNOWN)
    streamed = door.read(prediction=KNOWN, stream_options={"include_usage": True})[-1].specclient
    assert plain.choices[0].message.content == "Hi"
    for report in (plain.specclient, streamed):
        got = report.prediction
        assert (got.accepted_tokens, got.rejected_tokens, got.acceptance_rate) == (None, None, None)
        assert report.usage.completion == 2


def test_a12_usage_itself_may_be_null(door: SyncDoor) -> None:
    at(door, "deepseek")
    report = ask(door, reply({**completion("Hi"), "usage": None}))
    assert (report.usage.prompt, report.usage.completion) == (None, None)


@pytest.mark.parametrize("provider", ["openai", "fireworks", "cerebras", "deepseek", "openai_compatible"])
@pytest.mark.parametrize("where", ["own chunk", "A14 with the finish", "A14 with choices of no text"])
def test_a13_a14_the_same_figures_streamed_or_not(door: SyncDoor, provider: str, where: str) -> None:
    at(door, provider, "gpt-4o" if provider == "openai" else "m")
    last: list[dict[str, Any]] = {
        "own chunk": [finish(), usage_chunk(**WILLISON)],
        "A14 with the finish": [finish("length") | {"usage": WILLISON}],
        "A14 with choices of no text": [finish(), chunk("") | {"usage": WILLISON}],
    }[where]
    plain = ask(door, reply(completion(usage=WILLISON)))
    door.server.play(sse(chunk("Hello"), *last))
    streamed = door.read(prediction=KNOWN)[-1].specclient
    assert streamed.prediction == plain.prediction
    assert streamed.usage == plain.usage
    assert streamed.usage.completion == 226


SILENT = {
    "A23": {},
    "A23-none": {"completion_tokens_details": None},
    "A23-other": {"prompt_tokens_details": {}},
}


@pytest.mark.parametrize("details", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize("provider", ["vllm", "sglang", "openai_compatible", "mistral", "fireworks"])
def test_a_200_does_not_prove_that_it_was_used(
    door: SyncDoor, provider: str, details: dict[str, Any]
) -> None:
    at(door, provider, overrides={"prediction": True})
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7} | details
    report = ask(door, reply(completion(usage=usage)))
    assert (report.prediction.outcome, report.prediction.effect) == ("forwarded", "unknown")
