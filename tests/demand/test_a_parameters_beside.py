"""A: what else is in a request with a prediction: the caller's parameters, limits and history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specclient
from tests.conformance.all_doors import DOORS
from tests.demand.predicting import KNOWN, TOOLS, ask, at
from tests.doors import MESSAGES, SyncDoor
from tests.providers.fixtures import Case
from tests.server import ScriptedServer, chunk, completion, finish, reply, sse

A6 = {
    "A6": ("fireworks", "reasoning", True, {}),
    "A6-details": ("fireworks", "reasoning_details", True, {}),
    "A6-documented-name": ("fireworks", "reasoning_content", False, {}),
    "A6-mistral": ("mistral", "reasoning_content", True, {}),
    "A6-cerebras": ("cerebras", "reasoning_content", True, {}),
    "A6-deepseek-keeps": ("deepseek", "reasoning_content", False, {}),
}


@pytest.mark.parametrize("way", DOORS)
@pytest.mark.parametrize(("provider", "key", "removed", "extra"), A6.values(), ids=A6)
def test_reasoning_in_the_history(
    way: str, server: ScriptedServer, tmp_path: Path, provider: str, key: str, removed: bool, extra: Any
) -> None:
    history = [*MESSAGES, {"role": "assistant", "content": "Hello.", key: "Hm."}, *MESSAGES]
    case = Case(provider, "gpt-oss-120b", "history", {"messages": history}, b"", "application/json")
    door = DOORS[way](server, tmp_path)
    server.respond = lambda _: reply(completion())
    try:
        seen = door.ask(case)
    finally:
        door.close()
    body = server.requests[-1].json
    assert ("prediction" in body) == (provider in ("fireworks", "cerebras"))
    assert (key not in body["messages"][1]) is removed
    assert body["messages"][1]["content"] == "Hello."
    assert ("reasoning_history" in {note.code for note in seen.report.notes}) is removed


PIECES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "A6-reasoning": (
        [chunk(reasoning="H"), chunk(reasoning="m", content=None), chunk("Yes")],
        {"reasoning": "Hm", "content": "Yes"},
    ),
    "A6-details": (
        [chunk(reasoning_details=[{"a": 1}]), chunk(reasoning_details=[{"b": 2}]), chunk("Yes")],
        {"reasoning_details": [{"a": 1}, {"b": 2}], "content": "Yes"},
    ),
    "A6-parts": (
        [chunk([{"type": "thinking", "thinking": "Hm"}]), chunk("Yes")],  # type: ignore[arg-type]
        {"reasoning_content": "Hm", "content": "Yes"},
    ),
}


@pytest.mark.parametrize(("chunks", "expected"), PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("provider", ["fireworks", "mistral", "openai_compatible"])
def test_a_streamed_answer_goes_back_as_a_message(
    door: SyncDoor, chunks: list[Any], expected: dict[str, Any], provider: str
) -> None:
    door.server.play(sse(*chunks, finish()), reply(completion()))
    door.make()
    message = door.collect().choices[0].message
    assert message.to_dict().items() >= expected.items()
    at(door, provider)
    door.create(messages=[*MESSAGES, message, *MESSAGES])
    back = door.sent["messages"][1]
    assert "content_parts" not in back
    if provider == "mistral" and "reasoning_content" in expected:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
        assert back["content"] == [thought, {"type": "text", "text": "Yes"}]
    else:
        assert back["content"] == "Yes"
    assert ("reasoning" in back, "reasoning_details" in back) == (
        provider == "openai_compatible" and "reasoning" in expected,
        provider == "openai_compatible" and "reasoning_details" in expected,
    )


def test_a7_unknown_fields_are_forwarded(door: SyncDoor) -> None:
    for provider in ("fireworks", "openai_compatible", "openrouter"):
        at(door, provider)
        ask(door, extra_body={"brand_new": {"a": [1]}})
        assert door.sent["brand_new"] == {"a": [1]}


CONFLICTS = {
    "A16": ({"tools": TOOLS}, "tools"),
    "A16-functions": ({"functions": [{"name": "f"}]}, "tools"),
    "A16-n": ({"n": 2}, "n>1"),
    "A16-logprobs": ({"logprobs": True}, "logprobs"),
    "A16-top": ({"top_logprobs": 2, "logprobs": True}, "logprobs"),
    "A16-penalty": ({"presence_penalty": 0.1}, "presence_penalty>0"),
    "A16-other-penalty": ({"frequency_penalty": 0.1}, "frequency_penalty>0"),
    "A16-audio": ({"modalities": ["text", "audio"]}, "modalities"),
}


@pytest.mark.parametrize("provider", ["openai", "azure"])
@pytest.mark.parametrize(("arguments", "code"), CONFLICTS.values(), ids=CONFLICTS)
def test_the_callers_parameters_win(
    door: SyncDoor, provider: str, arguments: dict[str, Any], code: str
) -> None:
    at(door, provider, "gpt-4o")
    report = ask(door, **arguments)
    assert door.sent.items() >= arguments.items()
    assert "prediction" not in door.sent
    assert [reason.code for reason in report.prediction.reasons] == [f"conflict:{code}"]
    at(door, provider, "gpt-4o", on_unsupported="error")
    with pytest.raises(specclient.PredictionRefusedError, match=code.partition(">")[0]):
        door.create(prediction=KNOWN, **arguments)
    assert len(door.server.requests) == 1


LIMITS = {
    "A18": ("openai", "gpt-5.1", {"max_tokens": 100}, {"max_completion_tokens": 100}),
    "A18-o3": ("openai", "o3-mini", {"max_tokens": 100}, {"max_completion_tokens": 100}),
    "A18-azure": ("azure", "gpt-5-mini", {"max_tokens": 100}, {"max_completion_tokens": 100}),
    "A18-mistral": ("mistral", "m", {"max_completion_tokens": 100}, {"max_tokens": 100}),
    "A18-as-it-is": ("mistral", "m", {"max_tokens": 100}, {"max_tokens": 100}),
    "A19": ("openai", "gpt-5.1", {"max_completion_tokens": 100}, {"max_completion_tokens": 100}),
    "A19-older": ("openai", "gpt-4-turbo", {"max_completion_tokens": 9}, {"max_completion_tokens": 9}),
    "A19-unknown": ("openai_compatible", "m", {"max_completion_tokens": 9}, {"max_completion_tokens": 9}),
    "A19-both": (
        "openai",
        "gpt-5.1",
        {"max_tokens": 5, "max_completion_tokens": 100},
        {"max_completion_tokens": 100},
    ),
    "A19-none": ("openai", "gpt-5.1", {}, {}),
}


@pytest.mark.parametrize(("provider", "model", "arguments", "expected"), LIMITS.values(), ids=LIMITS)
def test_exactly_one_limit(
    door: SyncDoor, provider: str, model: str, arguments: dict[str, int], expected: dict[str, int]
) -> None:
    at(door, provider, model)
    report = ask(door, prediction=None, **arguments)
    limits = {key: value for key, value in door.sent.items() if key.startswith("max_")}
    assert limits == expected
    assert any(note.code.startswith("length_") for note in report.notes) == (arguments != expected)
