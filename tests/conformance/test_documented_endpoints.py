"""Each endpoint's documented requests and answers, played by a scripted server through every door."""

from __future__ import annotations

from typing import Any

import pytest

from specclient.errors import APIStatusError
from tests import server as scripted
from tests.conformance.all_doors import Door, Gateway, WrappedSdk
from tests.providers.fixtures import ANSWER, Case, cases
from tests.server import Answer, ScriptedServer

CASES = cases()
ANSWERED = [case for case in CASES if case.status == 200]
SENT_TO = ("openai", "azure", "fireworks", "mistral", "cerebras", "openrouter", "oci", "specclient")
REFUSED = [case for case in CASES if case.refuses_prediction and case.provider in SENT_TO]
OTHERWISE = [case for case in CASES if case.status >= 400 and not case.refuses_prediction]


def answer(case: Case) -> Answer:
    """The fixture as bytes on the wire."""
    if case.streamed:
        return scripted.stream(*case.payload.splitlines(keepends=True), headers=case.headers)
    headers = {"content-type": "application/json", **case.headers}
    return scripted.reply(case.payload, case.status, headers)


@pytest.mark.parametrize("case", ANSWERED, ids=str)
def test_request_and_answer(door: Door, server: ScriptedServer, case: Case) -> None:
    server.play(answer(case))
    seen = door.ask(case)
    sent = server.requests[0]
    assert {key: sent.json.get(key) for key in case.sent} == case.sent
    assert not set(case.absent) & set(sent.json)
    assert {name: sent.headers.get(name) for name in case.sent_headers} == case.sent_headers
    assert seen.text == ANSWER
    assert not set(case.stripped) & seen.keys
    assert (seen.report.prediction.outcome, seen.report.prediction.effect) == (case.outcome, case.effect)
    assert_counts(seen.report.prediction, case.reading)


def assert_counts(found: Any, expected: dict[str, Any]) -> None:
    for name, told in (("accepted", found.accepted_tokens), ("rejected", found.rejected_tokens)):
        if name in expected:
            assert told == expected[name]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_live_refusal_is_asked_again_once_without_the_prediction(
    door: Door, server: ScriptedServer, case: Case
) -> None:
    server.play(answer(case), scripted.reply(scripted.completion(ANSWER)))
    seen = door.ask(case)
    first, second = server.requests
    assert "prediction" in first.json
    assert "prediction" not in second.json
    assert seen.text == ANSWER
    assert seen.report.prediction.outcome == "withheld"
    assert seen.report.prediction.reasons


@pytest.mark.parametrize("case", OTHERWISE, ids=str)
def test_any_other_refusal_is_the_callers(door: Door, server: ScriptedServer, case: Case) -> None:
    server.play(answer(case))
    with pytest.raises(Exception) as caught:
        door.ask(case)
    assert len(server.requests) == 1
    if not isinstance(door, WrappedSdk):
        assert isinstance(caught.value, APIStatusError)
    assert getattr(caught.value, "status_code", None) == case.status or isinstance(door, Gateway)
