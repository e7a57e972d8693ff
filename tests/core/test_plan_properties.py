"""For any request at any endpoint: nothing with meaning is lost, nothing undocumented is sent, and the
caller's own objects stay as they were."""

from __future__ import annotations

import contextlib
import copy
import json
from datetime import date
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from specclient.core.plan import Policy, build_plan
from specclient.prediction import Prediction
from specclient_providers import EndpointFacts, OverrideError, provider_names, resolve

KNOWN = "known text, known text\n"
MODELS = ["gpt-4o", "gpt-5", "codestral-latest", "gpt-oss-120b", "m", None]
MEANING = {
    "stop": ["\n"],
    "n": 2,
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "response_format": {"type": "json_object"},
    "temperature": 0.3,
    "logprobs": True,
    "presence_penalty": 0.5,
    "seed": 7,
    "user": "u",
    "custom": {"a": [1]},
    "provider": {"order": ["x"]},
    "nvext": {"extra_fields": ["worker_id"]},
    "stream_options": {"include_obfuscation": False},
}
LENGTHS = ("max_tokens", "max_completion_tokens")
requests = st.fixed_dictionaries(
    {"messages": st.sampled_from([[{"role": "user", "content": text}] for text in ("Hi", f"Edit: {KNOWN}")])},
    optional={
        **{name: st.just(value) for name, value in MEANING.items()},
        **{name: st.integers(1, 9) for name in LENGTHS},
        "stream": st.booleans(),
    },
)
policies = st.builds(Policy, put_in_prompt=st.booleans(), use_corpus=st.booleans(), opt_ins=st.booleans())
methods = st.sampled_from([None, "ngram", "NGRAM", "ngram-simple", "eagle3"])


def facts_of(provider: str, model: str | None, method: str | None) -> EndpointFacts:
    """The facts, with the method where that provider's servers have one of that name."""
    today = date(2026, 11, 29)
    if method is not None:
        with contextlib.suppress(OverrideError):
            overrides = {"speculation": {"method": method}}
            return resolve(provider, model=model, on=today, overrides=overrides)
    return resolve(provider, model=model, on=today)


@given(
    st.sampled_from(provider_names()),
    st.sampled_from(MODELS),
    requests,
    policies,
    methods,
    st.booleans(),
)
def test_any_plan(
    provider: str,
    model: str | None,
    request: dict[str, Any],
    policy: Policy,
    method: str | None,
    predicts: bool,
) -> None:
    facts = facts_of(provider, model, method)
    before = copy.deepcopy(request)
    plan = build_plan(request, facts=facts, prediction=Prediction(KNOWN) if predicts else None, policy=policy)
    assert request == before

    for name in MEANING.keys() & request.keys() - {"provider", "nvext", "stream_options"}:
        assert plan.body[name] == request[name]
    if "stream_options" in request and request.get("stream"):
        assert plan.body["stream_options"].items() >= request["stream_options"].items()
    given_lengths = [name for name in LENGTHS if name in request]
    sent_lengths = [name for name in LENGTHS if name in plan.body]
    assert len(sent_lengths) == len(given_lengths) or len(sent_lengths) == 1
    if given_lengths:
        assert {plan.body[name] for name in sent_lengths} <= {request[name] for name in given_lengths}

    sent = plan.outcome in ("forwarded", "local")
    assert ("prediction" in plan.body) == sent
    assert not sent or (predicts and facts.prediction.supported)
    assert (plan.outcome == "none") == (not predicts)
    assert (plan.corpus is not None) == (plan.outcome == "via_corpus")
    if plan.outcome == "via_prompt":
        assert KNOWN.strip() in json.dumps(plan.body["messages"])
    if not (policy.put_in_prompt or facts.prediction.shapes == ("tags",)):
        assert plan.body["messages"] == request["messages"]
    if facts.request.unknown_fields.state == "rejected":
        documented = {opt.field.split(".")[0] for opt in facts.request.opt_ins} | {"prediction"}
        assert plan.body.keys() - request.keys() <= documented | set(LENGTHS)
    if not policy.opt_ins:
        assert not plan.hidden
        assert not plan.headers
