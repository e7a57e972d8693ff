"""The `prediction` of a call: its forms, its way, its figures; the same for both clients."""

from __future__ import annotations

from typing import Any

import pytest

import specclient
from tests.doors import SyncDoor
from tests.server import chunk, completion, error, finish, reply, sse, usage_chunk

USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 226,
    "total_tokens": 236,
    "completion_tokens_details": {"accepted_prediction_tokens": 49, "rejected_prediction_tokens": 107},
}


@pytest.mark.parametrize(
    "prediction",
    [
        "known text",
        {"type": "content", "content": "known text"},
        specclient.Prediction("known text"),
        lambda: "known text",
        lambda request: request["messages"] and "known text",
    ],
    ids=["str", "dict", "object", "callable", "callable of the request"],
)
def test_a_prediction_in_every_form(door: SyncDoor, prediction: Any) -> None:
    door.make(overrides={"prediction": "documented"})
    door.server.play(reply(completion("Hello", usage=USAGE)))
    answer = door.create(prediction=prediction)
    assert door.sent["prediction"] == {"type": "content", "content": "known text"}
    report = answer.specclient.prediction
    assert (report.outcome, report.effect) == ("forwarded", "used")
    assert (report.accepted_tokens, report.rejected_tokens) == (49, 107)
    assert answer.usage.completion_tokens_details.accepted_prediction_tokens == 49


def test_a_callable_prediction_is_called_once_a_call(door: SyncDoor, waits: list[float]) -> None:
    calls: list[int] = []

    def known() -> str:
        calls.append(1)
        return "known text"

    door.make(overrides={"prediction": "documented"})
    door.server.play(error(500, "again"), error(500, "again"), reply(completion()))
    door.create(prediction=known)
    assert len(calls) == 1
    assert [r.json["prediction"]["content"] for r in door.server.requests] == ["known text"] * 3


def test_an_undocumented_prediction_is_withheld_with_a_reason(door: SyncDoor) -> None:
    door.server.play(reply(completion()))
    report = door.create(prediction="known text").specclient.prediction
    assert "prediction" not in door.sent
    assert report.outcome == "withheld"
    assert report.reasons[0].text


def test_the_same_figures_from_a_stream_and_from_a_plain_answer(door: SyncDoor) -> None:
    door.make(overrides={"prediction": "documented"})
    door.server.play(
        reply(completion("Hello", usage=USAGE)), sse(chunk("Hello"), finish(), usage_chunk(**USAGE))
    )
    plain = door.create(prediction="known").specclient
    streamed = door.read(prediction="known")[-1].specclient
    assert plain.prediction == streamed.prediction
    assert plain.usage == streamed.usage


def test_a_live_refusal_is_learnt_once(door: SyncDoor) -> None:
    door.make(overrides={"prediction": "documented"}, max_retries=0)
    refusal = error(400, "property 'prediction' is unsupported", param="prediction")
    door.server.play(refusal, reply(completion()), reply(completion()))
    first = door.create(prediction="known")
    second = door.create(prediction="known")
    assert ["prediction" in r.json for r in door.server.requests] == [True, False, False]
    assert first.specclient.prediction.outcome == second.specclient.prediction.outcome == "withheld"
    assert [a.status for a in first.specclient.attempts] == [400, 200]
    assert first.specclient.prediction.reasons
    assert second.specclient.prediction.reasons
    assert len(door.client.learned.entries()) == 1


def test_a_refusal_of_something_else_is_the_callers_error(door: SyncDoor) -> None:
    door.make(overrides={"prediction": "documented"})
    door.server.play(error(400, "temperature is too high", param="temperature"))
    with pytest.raises(specclient.BadRequestError) as caught:
        door.create(prediction="known")
    assert caught.value.param == "temperature"
    assert len(door.server.requests) == 1


def test_null_counters_are_not_zero(door: SyncDoor) -> None:
    details = {"accepted_prediction_tokens": None, "rejected_prediction_tokens": None}
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "completion_tokens_details": details,
    }
    door.make(overrides={"prediction": "documented"})
    door.server.play(reply(completion(usage=usage)))
    report = door.create(prediction="known").specclient.prediction
    assert report.accepted_tokens is None
    assert report.effect == "unknown"
