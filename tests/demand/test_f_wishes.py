"""F: what many asked for and nobody offered."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import specclient
from specclient.report import Outcome
from specclient_providers import provider_names
from tests.doors import MESSAGES, SyncDoor
from tests.server import completion, reply

KNOWN = "def total(items):\n    return sum(items)\n"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
FORMATS = ({"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}})


@pytest.mark.parametrize("provider", provider_names())
@pytest.mark.parametrize("known", [KNOWN, {"type": "content", "content": KNOWN}, lambda: KNOWN])
def test_f1_one_argument_for_every_target(provider: str, known: Any) -> None:
    url = "https://r.openai.azure.com" if provider == "azure" else None
    request = {"messages": MESSAGES}
    plan = specclient.plan(request, provider=provider, model="m", base_url=url, prediction=known)
    assert plan.outcome in get_args(Outcome)
    assert plan.outcome != "none"
    assert plan.reasons
    assert all(reason.code and reason.text.endswith((".", "?")) for reason in plan.reasons)
    assert ("prediction" in plan.body) == (plan.outcome in ("forwarded", "local"))


@pytest.mark.parametrize("provider", ["openai", "azure", "cerebras", "fireworks", "mistral", "local"])
def test_f5_tools_and_schemas_beside_a_prediction(provider: str) -> None:
    model = {"cerebras": "gpt-oss-120b", "mistral": "codestral-latest"}.get(provider, "gpt-4o")
    url = "https://r.openai.azure.com" if provider == "azure" else None
    for given in ({"tools": TOOLS}, *({"response_format": form} for form in FORMATS)):
        request = {"messages": MESSAGES, "prediction": KNOWN, **given}
        overrides = {"prediction": {"until": "2099-12-31"}} if provider in ("openai", "azure") else {}
        plan = specclient.plan(request, provider=provider, model=model, base_url=url, overrides=overrides)
        assert plan.body.items() >= given.items()
        together = "tools" not in given or provider in ("fireworks", "mistral", "local")
        assert (plan.outcome in ("forwarded", "local")) == together
        if not together:
            assert [reason.code for reason in plan.reasons] == ["conflict:tools"]


def test_f9_counters_reach_the_caller_in_the_usual_place(door: SyncDoor) -> None:
    details = {"accepted_prediction_tokens": 3, "rejected_prediction_tokens": 1}
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "completion_tokens_details": details}
    door.make(provider="cerebras", model="gpt-oss-120b")
    door.server.play(reply(completion(usage=usage)))
    answer = door.create(prediction=KNOWN)
    told = answer.usage.completion_tokens_details
    assert (told.accepted_prediction_tokens, told.rejected_prediction_tokens) == (3, 1)
    assert (answer.specclient.prediction.accepted_tokens, answer.specclient.prediction.rejected_tokens) == (
        3,
        1,
    )
