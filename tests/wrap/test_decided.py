"""A decision that is kept for requests that are alike is the one that each of them would get by itself."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from specclient.core.learned import Learned
from specclient.core.plan import Policy, build_plan
from specclient.economics.account import Economist
from specclient.economics.options import EconomicsOptions
from specclient.errors import ConfigError
from specclient.middleware import wire
from specclient.middleware.known import Known
from specclient.middleware.place import KEPT, Place
from specclient.prediction import Prediction
from specclient.report import Reason
from specclient_providers import registry, resolve

MODELS = ("gpt-4o", "codestral-latest", "m")
PARAMETERS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.2, "seed": 1, "stop": ["\n"]},
    {"max_tokens": 100},
    {"max_completion_tokens": 100, "max_tokens": None},
    {"n": 2, "presence_penalty": 0.5},
    {"n": 1, "logprobs": False},
    {"logprobs": True, "top_logprobs": 2},
    {"tools": [{"type": "function", "function": {"name": "prediction"}}]},
    {"modalities": ["text", "audio"], "audio": {"voice": "a"}},
    {"stream_options": {"include_usage": False}},
    {"min_p": 0.1, "speculation": [1], "min_tokens": 3},
)
ANSWER = {"role": "assistant", "content": "a"}
HISTORIES: tuple[list[dict[str, Any]], ...] = (
    [],
    [ANSWER],
    [ANSWER | {"reasoning_content": "because"}],
    [ANSWER | {"content_parts": [{"type": "text", "text": "a"}]}],
    [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
)
PREDICTIONS: tuple[Any, ...] = (
    ...,
    None,
    "",
    "known",
    {"type": "content", "content": "known"},
    {"type": "content", "content": ""},
    {"type": "content", "content": [{"type": "text", "text": "known"}]},
    {"type": "content", "content": "known", "more": 1},
    [1, 2],
)


def place(provider: str, model: str, policy: Policy | None = None, **corrections: Any) -> Place:
    facts = resolve(provider, model=model, base_url="http://h/v1", overrides=corrections)
    return Place(Known(facts), policy or Policy(), Learned(), Economist("t", EconomicsOptions(), {}), "t")


def request(model: str, text: str, history: Any, stream: Any, parameters: Any, prediction: Any) -> Any:
    """One of many requests; `text` is all that differs between two that look alike."""
    asked = {"messages": [*history, {"role": "user", "content": text}], "model": model, **parameters}
    if stream is not None:
        asked["stream"] = stream
    if prediction is not ...:
        asked["prediction"] = json.loads(json.dumps(prediction).replace("known", text))
    return asked


SHAPES = [
    *product(HISTORIES, (None, True), PARAMETERS[:1], PREDICTIONS),
    *product(HISTORIES[:1], (False, True), PARAMETERS[1:], PREDICTIONS),
]


@pytest.mark.parametrize("provider", [name for name in registry.provider_names() if name != "local"])
def test_a_kept_decision_is_the_one_made_anew(provider: str) -> None:
    kept = sum(compared(place(provider, model)) for model in MODELS)
    assert kept > len(SHAPES)


def test_a_text_that_is_looked_for_in_the_prompt_is_looked_for_each_time() -> None:
    here = place("vllm", "m", Policy(put_in_prompt=True), speculation={"method": "ngram"})
    assert compared(here) > 0


def compared(here: Place) -> int:
    """How many requests got a kept decision, after each was seen to get the right one."""
    kept, facts = 0, here.known.facts
    for shape in SHAPES:
        for text in ("first", "a second text", "third: " + "long " * 2000):
            asked = request(facts.model or "", text, *shape)
            try:
                anew = build_plan(asked, facts=facts, policy=here._policy, learned=Learned())
            except ConfigError:
                continue
            decided, own = here.decided(asked, {}, None, None)
            kept += own is None
            plan = decided.plan_for(asked) if own is None else own
            assert (plan.body, plan.headers, plan.hidden) == (anew.body, anew.headers, anew.hidden)
            assert (plan.outcome, plan.reasons, plan.notes) == (anew.outcome, anew.reasons, anew.notes)
            assert plan.prediction == anew.prediction
            given = json.dumps(asked, separators=(",", ":")).encode()
            sent = wire.rewritten(given, asked, decided.removed, decided.changed)
            assert json.loads(sent) == anew.body
    return kept


def test_a_refusal_and_a_prediction_from_beside_are_planned_by_themselves() -> None:
    here = place("openai", "gpt-4o", prediction={"state": "documented", "until": "2099-12-31"})
    asked = {"messages": [], "model": "gpt-4o", "prediction": {"type": "content", "content": "x"}}
    assert here.decided(asked, {}, None, None)[1] is not None
    decided, plan = here.decided(asked, {}, None, None)
    assert (plan, decided.outcome) == (None, "forwarded")
    _, plan = here.decided({"messages": [], "model": "gpt-4o"}, {}, Prediction("y"), None)
    assert plan is not None
    assert plan.body["prediction"]["content"] == "y"
    here._learned.remember(here.known.facts.url, "gpt-4o", Reason(code="refused", text="no"))
    assert here.decided(asked, {}, None, None)[0].outcome == "withheld"


def test_no_more_decisions_are_kept_than_a_client_needs() -> None:
    here = place("openai", "gpt-4o")
    for cap in range(3 * KEPT):
        here.decided({"messages": [], "model": "gpt-4o", "max_tokens": cap}, {}, None, None)
    assert len(here._kept) <= KEPT


@pytest.mark.parametrize(
    ("asked", "removed", "added", "sent"),
    [
        ({"a": 1, "prediction": "x"}, ("prediction",), {}, b'{"a":1}'),
        ({"a": 1, "prediction": "x", "b": [1.0]}, ("prediction",), {}, b'{"a":1,"b":[1.0]}'),
        ({"prediction": "x", "b": 2}, ("prediction",), {}, b'{"b":2}'),
        ({"a": 1, "prediction": "x"}, ("prediction",), {"c": {}}, b'{"a":1,"c":{}}'),
        ({"a": 1, "max_tokens": 3}, ("max_tokens",), {"cap": 3}, b'{"a":1,"cap":3}'),
        ({"a": {"c": 1, "prediction": 2}, "prediction": 3}, ("prediction",), {}, None),
        ({"a": 1, "prediction": {"b": 2, "c": 4}, "c": 5}, ("prediction",), {}, b'{"a":1,"c":5}'),
        ({"a": 1, "prediction": {"a": 2, "c": 4}, "c": 4}, ("prediction",), {"a": 9}, b'{"a":9,"c":4}'),
        ({"prediction": 3}, ("prediction",), {"b": 1}, b'{"b":1}'),
    ],
)
def test_only_what_changes_is_written_anew(asked: Any, removed: Any, added: Any, sent: bytes | None) -> None:
    given = json.dumps(asked, separators=(",", ":")).encode()
    found = wire.rewritten(given, asked, removed, added)
    assert json.loads(found) == {key: value for key, value in asked.items() if key not in removed} | added
    assert sent is None or found == sent


def test_what_is_not_touched_stays_byte_for_byte() -> None:
    given = b'{ "a" : 1.50,"t":"\\u00e9 \\ud83d" ,"prediction":"x","z":1e2 }\n'
    asked = {"a": 1.5, "t": "é \ud83d", "prediction": "x", "z": 100.0}
    assert wire.rewritten(given, asked, (), {"s": True}) == given.rstrip()[:-1] + b',"s":true}\n'
    assert wire.rewritten(given, asked, ("prediction",), {}) == given.replace(b',"prediction":"x"', b"")
