"""Each endpoint's documented requests and answers, through plan, reader, refusal and report."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from specclient.core.account import prediction_report
from specclient.core.plan import Plan, build_plan
from specclient.prediction import Prediction
from specclient_providers import AnswerReader, EndpointFacts, Reading, refuses_prediction, resolve
from specclient_providers.registry import get, provider_names
from tests.providers.fixtures import ANSWER, FOLDER, KNOWN, Case, cases

ON = date(2026, 11, 29)
CASES = cases()
ANSWERED = [case for case in CASES if case.status == 200]


def facts(case: Case) -> EndpointFacts:
    return resolve(
        case.provider,
        model=case.model,
        api_version=case.api_version,
        base_url=case.base_url,
        on=ON,
        overrides=case.overrides,
    )


def plan(case: Case) -> Plan:
    return build_plan(case.request_body(), facts=facts(case), prediction=Prediction(KNOWN))


def reading(case: Case) -> Reading:
    reader = AnswerReader(facts(case))
    reader.headers(case.headers)
    for event in case.events():
        reader.event(event)
    return reader.result()


def figure(found: Reading, name: str) -> Any:
    if name in ("prompt", "completion", "total_tokens", "cached", "reasoning"):
        return getattr(found.usage, name)
    renamed = {"ttft": "time_to_first_token", "total": "server_total"}.get(name, name)
    value = getattr(found, renamed)
    return round(value.seconds, 6) if hasattr(value, "seconds") else value


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_documented_request_is_sent(case: Case) -> None:
    made = plan(case)
    assert {key: made.body.get(key) for key in case.sent} == case.sent
    assert not set(case.absent) & set(made.body)
    headers = {name.lower(): value for name, value in made.headers.items()}
    assert {name: headers.get(name) for name in case.sent_headers} == case.sent_headers
    for text in case.prompt_holds:
        assert text in made.body["messages"][-1]["content"]


@pytest.mark.parametrize("case", ANSWERED, ids=str)
def test_the_documented_answer_is_read(case: Case) -> None:
    found = reading(case)
    assert {name: figure(found, name) for name in case.reading} == case.reading
    assert all(code == "header_precedes_stream" for code, _ in found.notes)


@pytest.mark.parametrize("case", ANSWERED, ids=str)
def test_outcome_and_effect_are_told(case: Case) -> None:
    report = prediction_report(plan(case), reading(case))
    assert (report.outcome, report.effect) == (case.outcome, case.effect)


@pytest.mark.parametrize("case", ANSWERED, ids=str)
def test_the_caller_sees_the_text_and_nothing_that_we_asked_for(case: Case) -> None:
    made = plan(case)
    shown = [made.hide(event) for event in case.events()]
    kept = [event for event in shown if event is not None]
    if case.swallowed is not None:
        assert len(shown) - len(kept) == case.swallowed
    for event in kept:
        assert not set(case.stripped) & set(event)
    choices = [choice for event in kept for choice in event["choices"]]
    text = "".join(
        (choice.get("delta") or choice.get("message") or {}).get("content") or "" for choice in choices
    )
    assert text == ANSWER
    assert choices[-1]["finish_reason"] == "stop"
    assert "meta_info" not in json.dumps(kept)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_a_refusal_of_the_prediction_counts_as_one(case: Case) -> None:
    body = json.loads(case.payload) if not case.streamed else None
    assert refuses_prediction(case.status, body) == case.refuses_prediction
    assert refuses_prediction(case.status, case.payload) == case.refuses_prediction


def test_every_documented_endpoint_has_plain_streamed_and_refused_cases() -> None:
    for name in provider_names():
        endpoint = get(name)
        documented = any(rule.claim.state == "documented" for rule in endpoint.prediction)
        if not documented or name == "local":
            continue
        names = {case.name.split("-")[0] for case in cases(name)}
        assert {"plain", "streamed", "refused"} <= names, name


def test_no_stream_file_is_left_over() -> None:
    named = {
        entry["sse"]
        for path in FOLDER.glob("*.json")
        for entry in json.loads(path.read_text(encoding="utf-8"))["cases"]
        if "sse" in entry
    }
    assert named == {path.name for path in FOLDER.glob("*.sse")}


def test_every_fixture_names_what_it_was_written_from() -> None:
    for path in FOLDER.glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["written_from"], path.name
