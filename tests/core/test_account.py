"""What a plan and counters say together. A 200 alone never proves that a prediction was used."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from specclient.core.account import answer_notes, effect, prediction_report, speculation_data
from specclient.core.plan import Plan, build_plan
from specclient.prediction import Prediction
from specclient_providers import Reading, resolve

ON = date(2026, 11, 29)


def plan(provider: str, model: str = "m", overrides: Any = None, text: str | None = "known") -> Plan:
    facts = resolve(provider, model=model, on=ON, overrides=overrides)
    request = {"model": model, "messages": [{"role": "user", "content": "known"}]}
    return build_plan(request, facts=facts, prediction=Prediction(text) if text else None)


NGRAM = {"speculation": {"method": "ngram"}}


@pytest.mark.parametrize(
    ("case", "reading", "expected"),
    [
        (plan("openai", "gpt-4o"), Reading(), "unknown"),
        (plan("openai", "gpt-4o"), Reading(accepted=0, rejected=4), "unused"),
        (plan("openai", "gpt-4o"), Reading(accepted=3, rejected=4), "used"),
        (plan("mistral", "codestral-latest"), Reading(), "unknown"),
        (plan("xai", "grok-3"), Reading(accepted=0, rejected=0), "unused"),
        (plan("xai", "grok-3", text=None), Reading(accepted=0, rejected=0), "unknown"),
        (plan("vllm", overrides=NGRAM), Reading(), "unknown"),
        (plan("vllm", overrides=NGRAM), Reading(drafted=10, accepted_draft=0), "unused"),
        (plan("vllm", overrides=NGRAM), Reading(drafted=10, accepted_draft=6), "used"),
        (plan("local"), Reading(accepted=5), "used"),
    ],
)
def test_effect(case: Plan, reading: Reading, expected: str) -> None:
    assert effect(case, reading) == expected


def test_zero_counters_of_an_endpoint_that_only_ignores_predictions_prove_nothing() -> None:
    sent = plan("openai_compatible", overrides={"prediction": {"state": "documented"}})
    assert effect(sent, Reading(accepted=0)) == "unused"
    assert effect(sent, Reading()) == "unknown"


def test_a_report_keeps_unreported_apart_from_zero() -> None:
    report = prediction_report(plan("openai", "gpt-4o"), None)
    assert (report.accepted_tokens, report.rejected_tokens, report.acceptance_rate) == (None, None, None)
    assert report.extra_billed_tokens is None
    assert report.outcome == "forwarded"


def test_a_withheld_prediction_has_no_acceptance_rate_of_its_own() -> None:
    report = prediction_report(plan("vllm"), Reading(drafted=10, accepted_draft=5, acceptance_rate=0.5))
    assert report.outcome == "withheld"
    assert report.acceptance_rate is None
    assert report.drafted_tokens == 10


def test_speculation_is_shown_only_where_something_was_reported() -> None:
    assert speculation_data(Reading()) is None
    found = speculation_data(Reading(drafted=10, accepted_draft=5, forward_passes=4))
    assert found == {"draft_tokens": 10, "accepted_draft_tokens": 5, "forward_passes": 4}


def test_mistrusted_figures_become_notes() -> None:
    notes = answer_notes(Reading(notes=(("nonsense", "queue is negative."),)))
    assert [(note.code, note.text) for note in notes] == [("nonsense", "queue is negative.")]
