"""B: chunks and answers of unusual shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.demand.faults import CALLS, EMPTY, PARTS
from tests.doors import MESSAGES, SyncDoor, text_of
from tests.server import chunk, completion, finish, reply, sse


@pytest.mark.parametrize("odd", EMPTY.values(), ids=EMPTY)
def test_chunks_without_choices(door: SyncDoor, odd: dict[str, Any]) -> None:
    frame = {"id": "c", "object": "chat.completion.chunk", **odd}
    door.server.play(
        sse(frame, chunk("Hel"), frame, chunk("lo"), finish(), {**frame, "usage": {"prompt_tokens": 1}})
    )
    chunks = door.read()
    assert "".join(c.delta.content or "" for got in chunks for c in got.choices if c and c.delta) == "Hello"
    assert chunks[-1].specclient.usage.prompt == 1


@pytest.mark.parametrize(("deltas", "expected"), CALLS.values(), ids=CALLS)
def test_tool_calls_without_index(
    door: SyncDoor, deltas: list[list[dict[str, Any]]], expected: list[tuple[str, str]]
) -> None:
    door.server.play(sse(*[chunk(tool_calls=calls) for calls in deltas], finish("tool_calls")))
    made = door.collect().choices[0].message.tool_calls
    assert [(call.function.name, call.function.arguments) for call in made] == expected


@pytest.mark.parametrize(("contents", "reasoning"), PARTS.values(), ids=PARTS)
def test_content_as_parts(door: SyncDoor, contents: list[Any], reasoning: str) -> None:
    door.server.play(sse(*[chunk(content) for content in contents], finish()))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert "".join(c.delta.reasoning_content or "" for got in chunks for c in got.choices) == reasoning
    whole = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    answer = completion()
    answer["choices"][0]["message"]["content"] = whole
    door.server.play(reply(answer))
    message = door.create().choices[0].message
    assert (message.content, message.reasoning_content or "") == ("Hello", reasoning)


def test_half_a_surrogate_pair_in_a_raw_answer(door: SyncDoor) -> None:
    body = json.dumps(completion("a\ud83d")).encode()
    door.server.play(reply(body, headers={"content-type": "application/json"}))
    got = door.run(door.client.chat.completions.with_raw_response.create(messages=MESSAGES))
    assert got.parse().choices[0].message.content == "a\ud83d"
    assert json.loads(got.content)["choices"][0]["message"]["content"] == "a\ud83d"
