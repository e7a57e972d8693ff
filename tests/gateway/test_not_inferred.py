"""Where a target asks for predictions to be inferred and none is, the report says why."""

from __future__ import annotations

from typing import Any

import pytest

from specclient.gateway.infer import SHORTEST, inferred_prediction
from tests import server as scripted


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("Say hello.", "there is none"),
        ("Fix this.\n```\nx = 123\n```", "the largest has 8"),
        (f"Fix this.\n```\n{'x' * (SHORTEST - 2)}\n```", "the largest has 79"),
        (f"Fix this.\n```\n{'x' * (SHORTEST - 1)}\n```", None),
        ([{"type": "text", "text": "<file>a</file>"}], "the largest has 1"),
    ],
)
def test_the_shortest_block_that_is_taken(content: Any, found: str | None) -> None:
    prediction, reason = inferred_prediction({"messages": [{"role": "user", "content": content}]})
    assert (prediction is None) == (found is not None)
    assert reason.code == ("inferred" if found is None else "not_inferred")
    assert found is None or f"from 80 characters on: {found} " in reason.text


@pytest.mark.parametrize("request_", [{}, {"messages": "x"}, {"messages": [None, 3]}, {"prompt": "x"}])
def test_what_has_no_messages(request_: dict[str, Any]) -> None:
    assert inferred_prediction(request_)[0] is None


def test_the_report_says_why_none_was_taken(gateway: Any, upstream: scripted.ScriptedServer) -> None:
    upstream.respond = lambda _: scripted.reply(scripted.completion())
    messages = [{"role": "user", "content": "Fix this.\n```\nx = 123\n```"}]
    told = gateway.post(model="predicting", messages=messages).json()["specclient"]["prediction"]
    assert told["outcome"] == "none"
    assert [reason["code"] for reason in told["reasons"]] == ["not_inferred"]
    assert "prediction" not in upstream.requests[0].json
    plain = gateway.post(model="plain", messages=messages).json()["specclient"]["prediction"]
    assert not plain["reasons"]
