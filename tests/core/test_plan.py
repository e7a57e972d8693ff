"""What a plan says beyond its body: the way to a downgrade, hidden reports, and words for people."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from specclient.core.learned import Learned
from specclient.core.plan import Plan, Policy, build_plan
from specclient.errors import ConfigError, PredictionRefusedError
from specclient.prediction import Prediction
from specclient.report import Reason
from specclient_providers import resolve

KNOWN = Prediction("known text\n")
WITHHOLD = Policy()
ON = date(2026, 11, 29)


def plan_for(endpoint: str, model: str = "m", policy: Policy = WITHHOLD, **request: Any) -> Plan:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **request}
    return build_plan(body, facts=resolve(endpoint, model=model, on=ON), prediction=KNOWN, policy=policy)


def test_a_downgrade_undoes_everything_that_was_done_for_the_prediction() -> None:
    plan = plan_for("openrouter", provider={"order": ["x"]})
    bare = plan.without_prediction(Reason(code="refused_now", text="It was refused."))
    assert "require_parameters" not in bare.body["provider"]
    assert plan.body["provider"]["require_parameters"] is True
    bare = plan_for("openai", "gpt-4o", max_completion_tokens=5).without_prediction(
        Reason(code="refused_now", text="It was refused.")
    )
    assert bare.body["max_completion_tokens"] == 5
    assert "max_tokens" not in bare.body
    assert bare.outcome == "withheld"


def test_a_downgrade_keeps_the_wish_for_the_local_engine() -> None:
    plan = plan_for("fireworks", policy=Policy(on_unsupported="local"))
    assert not plan.reroute_local
    assert plan.without_prediction(Reason(code="x", text="y.")).reroute_local
    assert plan_for("groq", policy=Policy(on_unsupported="local")).reroute_local


@pytest.mark.parametrize(
    ("endpoint", "model", "said"),
    [
        ("openai", "gpt-5.1", "OpenAI is known to refuse requests for gpt-5.1 that hold a prediction."),
        ("groq", "m", "Groq is known to refuse requests that hold a prediction."),
    ],
)
def test_a_refusal_is_told_of_whom_it_is_known_and_from_whom(endpoint: str, model: str, said: str) -> None:
    (reason,) = plan_for(endpoint, model).reasons
    assert reason.text == f"{said} The source is secondary: a third party says so."


def test_what_an_endpoint_documents_itself_is_no_hearsay() -> None:
    assert "secondary" not in str(plan_for("azure", "m", policy=WITHHOLD).reasons[0])


def test_an_error_policy_says_what_where_and_how_to_mend_it() -> None:
    with pytest.raises(PredictionRefusedError) as caught:
        plan_for("groq", policy=Policy(on_unsupported="error"))
    message = str(caught.value)
    assert "Groq" in message
    assert "on_unsupported" in message
    assert "known text" not in message


def test_facts_for_another_api_are_refused() -> None:
    with pytest.raises(ConfigError, match="chat API"):
        build_plan({}, facts=resolve("openai"), api="completions")


def test_a_prediction_that_is_none_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError):
        build_plan({"prediction": 3.5}, facts=resolve("openai", model="gpt-4o"))


def test_the_explicit_prediction_wins_over_the_requests_own() -> None:
    plan = plan_for("fireworks", prediction="other")
    assert plan.body["prediction"] == {"type": "content", "content": "known text\n"}


def test_reasons_carry_their_source_and_date() -> None:
    reason = plan_for("fireworks").reasons[0]
    assert reason.source == "https://docs.fireworks.ai/guides/predicted-outputs"
    assert "2026-11-29" in reason.text


def test_an_ended_feature_is_named_with_its_last_day() -> None:
    facts = resolve("openai", model="gpt-4o", on=date(2027, 2, 1))
    plan = build_plan({"model": "gpt-4o"}, facts=facts, prediction=KNOWN)
    assert "2027-01-14" in plan.reasons[0].text


def test_azure_paths_follow_the_api_version() -> None:
    facts = resolve(
        "azure", model="mine", api_version="2025-01-01-preview", base_url="https://r.openai.azure.com/"
    )
    plan = build_plan({"model": "mine"}, facts=facts)
    assert (facts.base_url, plan.path) == (
        "https://r.openai.azure.com/openai",
        "/deployments/mine/chat/completions",
    )
    assert plan.query == {"api-version": "2025-01-01-preview"}


def test_the_longest_known_text_in_the_prompt_is_found_despite_line_endings() -> None:
    facts = resolve("vllm", model="m", overrides={"speculation": {"method": "ngram"}})
    parts = [{"type": "text", "text": "Edit:\r\nknown text\r\n"}]
    request = {"messages": [{"role": "user", "content": parts}]}
    assert build_plan(request, facts=facts, prediction=KNOWN).outcome == "via_prompt"


def test_known_text_is_added_to_the_last_user_message_only() -> None:
    facts = resolve("vllm", model="m", overrides={"speculation": {"method": "ngram"}})
    first, last = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    request = {"messages": [first, {"role": "assistant", "content": "x"}, last]}
    plan = build_plan(request, facts=facts, prediction=KNOWN, policy=Policy(put_in_prompt=True))
    contents = [message["content"] for message in plan.body["messages"]]
    assert contents[:2] == ["one", "x"]
    assert contents[2].startswith("two")
    assert contents[2].count("known text") == 1
    assert last["content"] == "two"


def test_a_corpus_that_was_refused_is_not_tried_again() -> None:
    facts = resolve("sglang", model="m", overrides={"speculation": {"method": "NGRAM"}})
    learned = Learned()
    learned.remember(facts.url, "m", Reason(code="refused_live", text="It was refused."))
    plan = build_plan({}, facts=facts, prediction=KNOWN, policy=Policy(use_corpus=True), learned=learned)
    assert (plan.outcome, plan.corpus, plan.reasons[0].code) == ("withheld", None, "refused_before")


def test_a_plan_for_a_corpus_names_the_text_to_load() -> None:
    facts = resolve("sglang", model="m", overrides={"speculation": {"method": "NGRAM"}})
    plan = build_plan({"model": "m"}, facts=facts, prediction=KNOWN, policy=Policy(use_corpus=True))
    assert (plan.outcome, plan.corpus) == ("via_corpus", "known text\n")
    assert plan.without_prediction(Reason(code="x", text="y.")).corpus is None


def test_without_a_text_message_nothing_is_added() -> None:
    facts = resolve("vllm", model="m", overrides={"speculation": {"method": "ngram"}})
    request = {"messages": [{"role": "user", "content": [{"type": "image_url"}]}, {"role": "user"}]}
    plan = build_plan(request, facts=facts, prediction=KNOWN, policy=Policy(put_in_prompt=True))
    assert (plan.outcome, plan.reasons[0].code) == ("withheld", "not_in_prompt")


CHUNK = {"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1}


def hidden(plan: Plan, **fields: Any) -> dict[str, Any] | None:
    event = {**CHUNK, **fields}
    before = {**event}
    result = plan.hide(event)
    assert event == before
    return result


def test_a_usage_chunk_that_we_asked_for_is_swallowed() -> None:
    plan = plan_for("openai", "gpt-4o", stream=True)
    assert plan.hidden == {"include_usage"}
    assert hidden(plan, choices=[], usage={"total_tokens": 3}) is None
    assert hidden(plan, choices=[{"index": 0}], usage=None) == {**CHUNK, "choices": [{"index": 0}]}


def test_a_usage_chunk_that_the_caller_asked_for_stays() -> None:
    plan = plan_for("openai", "gpt-4o", stream=True, stream_options={"include_usage": True})
    chunk = {"choices": [], "usage": {"total_tokens": 3}}
    assert hidden(plan, **chunk) == {**CHUNK, **chunk}


def test_usage_beside_choices_stays_since_it_may_not_be_ours() -> None:
    plan = plan_for("openai", "gpt-4o", stream=True)
    fields = {"choices": [{"index": 0}], "usage": {"total_tokens": 3}}
    assert hidden(plan, **fields) == {**CHUNK, **fields}


def test_azures_first_chunk_without_choices_stays() -> None:
    facts = resolve("azure", model="gpt-4o", base_url="https://r.openai.azure.com", on=ON)
    plan = build_plan({"model": "gpt-4o", "stream": True}, facts=facts)
    fields = {"choices": [], "prompt_filter_results": [], "usage": None}
    assert hidden(plan, **fields) == {**CHUNK, "choices": [], "prompt_filter_results": []}


def test_metrics_are_taken_out_of_bodies_and_chunks() -> None:
    plan = plan_for("fireworks")
    assert hidden(plan, choices=[{"index": 0}], perf_metrics={"a": 1}) == {**CHUNK, "choices": [{"index": 0}]}
    kept = plan_for("fireworks", perf_metrics_in_response=True)
    assert "perf_metrics" in (hidden(kept, choices=[{"index": 0}], perf_metrics={"a": 1}) or {})


def test_nested_traces_leave_their_neighbours() -> None:
    plan = plan_for("dynamo")
    assert hidden(plan, choices=[1], nvext={"timing": {}, "worker_id": 7}) == {
        **CHUNK,
        "choices": [1],
        "nvext": {"worker_id": 7},
    }
    assert hidden(plan, choices=[1], nvext={"timing": {}}) == {**CHUNK, "choices": [1]}


def test_a_chunk_that_only_carried_our_report_is_swallowed() -> None:
    plan = plan_for("sglang", stream=True)
    assert hidden(plan, choices=[], sglext={"spec_tokens_details": {}}) is None
    plain = plan_for("sglang")
    choices = [{"index": 0, "meta_info": {"queue_time": 1}}]
    assert hidden(plain, choices=choices) == {**CHUNK, "choices": [{"index": 0}]}


def test_nothing_is_hidden_when_nothing_was_switched_on() -> None:
    plan = plan_for("groq", stream=True)
    event = {**CHUNK, "choices": [], "usage": {"total_tokens": 1}}
    assert plan.hide(event) is event


STRANGER = {"error": {"message": "Unrecognized request argument supplied: stream_options"}}


def test_a_report_that_is_refused_is_named_if_it_was_ours() -> None:
    ours = plan_for("openai", "gpt-4o", stream=True)
    assert ours.refused_opt_in(400, STRANGER) == "include_usage"
    assert ours.refused_opt_in(500, STRANGER) is None
    assert ours.refused_opt_in(400, {"error": {"message": "Unknown parameter: seed"}}) is None
    theirs = plan_for("openai", "gpt-4o", stream=True, stream_options={"include_usage": True})
    assert theirs.refused_opt_in(400, STRANGER) is None


def test_a_refused_report_is_left_out_and_remembered() -> None:
    learned = Learned()
    facts = resolve("openai", model="gpt-4o", on=ON)
    request = {"model": "gpt-4o", "messages": [], "stream": True}
    first = build_plan(request, facts=facts, prediction=KNOWN, learned=learned)
    again = first.without("include_usage", Reason(code="refused_live", text="It was refused."))
    assert "stream_options" not in again.body
    assert again.hidden == frozenset()
    assert again.outcome == "forwarded"
    assert any(note.code == "opt_in_refused:include_usage" for note in again.notes)
    later = build_plan(request, facts=facts, prediction=KNOWN, learned=learned)
    assert "stream_options" not in later.body
