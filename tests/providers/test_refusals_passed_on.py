"""Refusals as proxies, validators and other providers pass them on, and errors that only look like one.

`refusals_passed_on.jsonl` has one answer a line: name, status, body, and whether it refuses the prediction.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specclient_providers import refuses, refuses_prediction

LINES = Path(__file__).with_name("refusals_passed_on.jsonl").read_text(encoding="utf-8").splitlines()
ANSWERS = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["name"] for answer in ANSWERS])
def test_whose_error_it_is(answer: dict[str, Any]) -> None:
    for body in (answer["body"], json.dumps(answer["body"]), json.dumps(answer["body"]).encode()):
        if not isinstance(answer["body"], str):
            assert refuses_prediction(answer["status"], body) == answer["refuses_prediction"]
    assert refuses_prediction(answer["status"], answer["body"]) == answer["refuses_prediction"]
    assert not refuses_prediction(500, answer["body"])


@pytest.mark.parametrize("length", [50_000, 200_000])
def test_a_server_may_quote_the_whole_prediction(length: int) -> None:
    given = {"type": "content", "content": "it's\n" * (length // 5)}
    errors = [{"type": "extra_forbidden", "loc": ("body", "prediction"), "msg": "Extra", "input": given}]
    assert refuses_prediction(400, {"object": "error", "message": str(errors)})
    assert refuses_prediction(422, {"detail": errors})
    assert refuses_prediction(
        400, {"message": f"litellm.BadRequestError: XException - {json.dumps(errors)}. Done"}
    )


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'other'."),
        ("max_tokens", "Invalid 'max_tokens': Unsupported parameter: 'max_tokens' is not supported here."),
        ("stream_options", "stream_options: Extra inputs are not permitted"),
    ],
)
def test_another_field_is_told_by_the_same_rules(field: str, message: str) -> None:
    body = {"error": {"message": message}}
    assert refuses(400, body, (field,))
    assert not refuses_prediction(400, body)


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "error: " * 50_000 + "{", "1 validation error:\n" + "{" * 100_000, "a.b." * 100_000],
)
def test_a_hostile_body_is_no_refusal_and_does_no_harm(text: str) -> None:
    assert not refuses_prediction(400, text)
    assert not refuses_prediction(400, {"error": {"message": text}})
