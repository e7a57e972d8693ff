"""Reasoning in the assistant's earlier messages: sent where it is taken, taken out where it is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from specclient.core.plan import Plan, build_plan
from specclient_providers import resolve

ANSWER = {"role": "assistant", "content": "Yes."}
USER = {"role": "user", "content": "Go on.", "reasoning": "mine"}
TOOLS = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
EVERY = {"reasoning": "R", "reasoning_content": "R", "reasoning_details": [{"text": "R"}], "thinking": "R"}
PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "R"}]}, {"type": "text", "text": "Yes."}]


def sent(provider: str, *messages: dict[str, Any], **overrides: Any) -> Plan:
    request = {"model": "m", "messages": [*messages, USER]}
    before = copy.deepcopy(request)
    plan = build_plan(request, facts=resolve(provider, model="m", overrides=overrides))
    assert request == before, "the caller's own messages stay as they were"
    return plan


@pytest.mark.parametrize(
    ("provider", "kept"),
    [
        ("fireworks", {"reasoning_content"}),
        ("cerebras", {"reasoning"}),
        ("groq", {"reasoning"}),
        ("mistral", set()),
        ("openai", set(EVERY)),
        ("deepseek", set(EVERY)),
        ("openai_compatible", set(EVERY)),
        ("local", set(EVERY)),
    ],
)
def test_only_what_is_known_to_be_refused_is_taken_out(provider: str, kept: set[str]) -> None:
    plan = sent(provider, {**ANSWER, **EVERY, **TOOLS}, {**ANSWER, "thinking": "R"}, ANSWER)
    first, second, third, user = plan.body["messages"]
    assert first == {**ANSWER, **TOOLS, **{key: EVERY[key] for key in kept}}
    assert second == ({**ANSWER, "thinking": "R"} if "thinking" in kept else ANSWER)
    assert (third, user) == (ANSWER, USER)
    notes = [note for note in plan.notes if note.code == "reasoning_history"]
    assert len(notes) == (kept != set(EVERY))
    for note in notes:
        assert note.source
        assert all(key in note.text for key in set(EVERY) - kept)


@pytest.mark.parametrize("provider", ["fireworks", "groq", "mistral"])
def test_nothing_is_said_where_nothing_is_taken_out(provider: str) -> None:
    plan = sent(provider, ANSWER)
    assert plan.body["messages"] == [ANSWER, USER]
    assert "reasoning_history" not in {note.code for note in plan.notes}


def test_an_answer_in_parts_goes_back_as_it_came_or_as_its_text() -> None:
    given_back = {**ANSWER, "content_parts": PARTS, "reasoning_content": "R"}
    assert sent("mistral", given_back).body["messages"][0] == {**ANSWER, "content": PARTS}
    assert sent("openai", given_back).body["messages"][0] == {**ANSWER, "reasoning_content": "R"}
    assert sent("groq", given_back).body["messages"][0] == ANSWER


def test_the_configuration_has_the_last_word() -> None:
    message = {**ANSWER, **EVERY}
    assert sent("fireworks", message, reasoning_history=True).body["messages"][0] == message
    assert sent("fireworks", message, reasoning_history=False).body["messages"][0] == ANSWER
    only = sent("openai_compatible", message, reasoning_history=["reasoning"])
    assert only.body["messages"][0] == {**ANSWER, "reasoning": "R"}
