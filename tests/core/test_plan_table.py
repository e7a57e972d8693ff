"""One line of `plan_table.txt` a request: what goes on the wire, where the prediction goes, and why."""

from __future__ import annotations

import copy
import json

import pytest

from specclient.errors import PredictionRefusedError
from specclient.prediction import Prediction
from specclient.report import Reason
from specclient_providers import provider_names
from tests.core.plan_rows import KNOWN, Row, planned, rows, shown

ROWS = list(rows())
PREDICTION_KEYS = {"prediction", "speculation"}


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths are then estimated, the same on every machine."""
    monkeypatch.setattr(Prediction, "estimate_tokens", lambda *_: None)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: Row) -> None:
    if row.decision == "error":
        with pytest.raises(PredictionRefusedError) as caught:
            planned(row.provider, row.model, row.parameters)
        assert KNOWN not in str(caught.value)
        return
    plan, request = planned(row.provider, row.model, row.parameters)
    assert shown(plan, request) == (row.decision, row.notes, row.body)


def test_the_table_is_long_and_covers_every_provider() -> None:
    assert len(ROWS) >= 150
    assert {row.provider for row in ROWS} == set(provider_names())
    for kind in ("stream=true", "tools="):
        assert {row.provider for row in ROWS if kind in row.parameters} == set(provider_names())


PLANNED = [row for row in ROWS if row.decision != "error"]


@pytest.mark.parametrize("row", PLANNED, ids=str)
def test_nothing_undocumented_is_sent(row: Row) -> None:
    """A body holds the caller's own keys, a documented prediction, a documented opt-in or a forced key."""
    plan, request = planned(row.provider, row.model, row.parameters)
    rules = plan.facts
    allowed = set(request) | {"max_tokens", "max_completion_tokens"}
    allowed |= {opt.field.split(".")[0] for opt in rules.request.opt_ins}
    if plan.outcome in ("forwarded", "local"):
        assert rules.prediction.supported
        allowed |= PREDICTION_KEYS | {key.split(".")[0] for key in rules.prediction.forced}
    else:
        allowed -= PREDICTION_KEYS
    assert set(plan.body) <= allowed


@pytest.mark.parametrize("row", PLANNED, ids=str)
def test_nothing_with_meaning_is_lost_and_the_request_is_not_changed(row: Row) -> None:
    plan, request = planned(row.provider, row.model, row.parameters)
    before = copy.deepcopy(request)
    hints = PREDICTION_KEYS | {"max_tokens", "max_completion_tokens", "stream_options", "messages", "prompt"}
    for key in set(request) - hints - {"provider", "nvext"}:
        assert plan.body[key] == request[key]
    for key in ("provider", "nvext"):
        if isinstance(request.get(key), dict):
            assert request[key].keys() <= plan.body[key].keys()
        elif key in request:
            assert plan.body[key] == request[key]
    plan.without_prediction(plan.reasons[0] if plan.reasons else _reason())
    assert request == before


@pytest.mark.parametrize("row", PLANNED, ids=str)
def test_every_decision_about_a_prediction_has_a_reason_in_words(row: Row) -> None:
    plan, _ = planned(row.provider, row.model, row.parameters)
    assert bool(plan.reasons) == (plan.outcome != "none")
    for reason in (*plan.reasons, *plan.notes):
        assert reason.text.endswith((".", "?"))
        assert KNOWN.strip() not in reason.text


@pytest.mark.parametrize("row", PLANNED, ids=str)
def test_a_refused_prediction_leaves_no_trace_in_the_next_body(row: Row) -> None:
    plan, request = planned(row.provider, row.model, row.parameters)
    bare = plan.without_prediction(_reason())
    assert bare.outcome == "withheld"
    assert [reason.code for reason in bare.reasons] == ["refused"]
    assert not PREDICTION_KEYS & (set(bare.body) - set(request))
    assert KNOWN not in json.dumps(bare.body) or row.parameters.find("holds") >= 0
    assert bare.prediction == plan.prediction


def _reason() -> Reason:
    return Reason(code="refused", text="The endpoint refused it.")
