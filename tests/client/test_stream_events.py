"""`chat.completions.stream`: typed events and the answer so far."""

from __future__ import annotations

import pytest

import specclient
from tests.doors import MESSAGES, SyncDoor
from tests.server import chunk, finish, role, sse, usage_chunk


def test_events(door: SyncDoor) -> None:
    from tests.doors import OpenStream

    tools = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]
    more = [{"index": 0, "function": {"arguments": '{"a": 1}'}}]
    door.server.play(
        sse(
            role(),
            chunk("Hel"),
            chunk("lo"),
            chunk(tool_calls=tools),
            chunk(tool_calls=more),
            finish("tool_calls"),
            usage_chunk(),
        )
    )
    manager = door.client.chat.completions.stream(messages=MESSAGES)
    if door.kind == "sync":
        with manager as stream:
            events = list(stream)
            final = stream.get_final_completion()
    else:
        stream = door.run(manager.__aenter__())
        events = list(OpenStream(door, stream))
        final = door.run(stream.get_final_completion())
        door.run(manager.__aexit__(None, None, None))
    kinds = [event.type for event in events if event.type != "chunk"]
    assert kinds == [
        "content.delta",
        "content.delta",
        "tool_calls.function.arguments.delta",
        "content.done",
        "tool_calls.function.arguments.done",
    ]
    assert next(e for e in events if e.type == "content.delta").snapshot == "Hel"
    message = final.choices[0].message
    assert message.content == "Hello"
    assert message.tool_calls[0].to_dict() == {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a": 1}'},
    }
    assert final.usage.completion_tokens == 2
    assert final.specclient.usage.completion == 2


def test_events_of_a_stream_that_was_left_have_no_final_answer(door: SyncDoor) -> None:
    door.server.play(sse(chunk("Hel"), chunk("lo"), finish()))
    manager = door.client.chat.completions.stream(messages=MESSAGES)
    stream = door.run(manager.__aenter__()) if door.kind == "async" else manager.__enter__()
    door.next(stream if door.kind == "async" else iter(stream))
    door.run(stream.close())
    with pytest.raises(specclient.SpecclientError, match="not read to its end"):
        door.run(stream.get_final_completion())


def test_events_of_logprobs_and_what_is_never_parsed(door: SyncDoor) -> None:
    from tests.doors import OpenStream

    first, second = chunk("a"), chunk(refusal="no")
    first["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -0.1}], "refusal": None}
    second["choices"][0]["logprobs"] = {"content": None, "refusal": [{"token": "no", "logprob": -0.2}]}
    door.server.play(sse(first, second, finish()))
    stream = (
        door.run(door.client.chat.completions.stream(messages=MESSAGES).__aenter__())
        if (door.kind == "async")
        else door.client.chat.completions.stream(messages=MESSAGES).__enter__()
    )
    first_event = door.next(stream)
    events = [first_event, *OpenStream(door, stream)]
    kinds = [event.type for event in events if event.type != "chunk"]
    assert kinds == [
        "content.delta",
        "logprobs.content.delta",
        "refusal.delta",
        "logprobs.refusal.delta",
        "content.done",
        "refusal.done",
        "logprobs.content.done",
        "logprobs.refusal.done",
    ]
    found = {event.type: event for event in events}
    assert found["logprobs.content.delta"].snapshot[0].token == "a"
    assert found["logprobs.refusal.done"].refusal[0].token == "no"
    assert (found["content.delta"].parsed, found["content.done"].parsed) == (None, None)
    final = door.run(stream.get_final_completion())
    assert final.choices[0].logprobs.refusal[0].logprob == -0.2
    door.run(stream.close())
