"""Answers as applications of the official SDK use them: dumped, copied, pickled, sent back."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import specclient
from tests.doors import MESSAGES, SyncDoor
from tests.server import chunk, completion, error, finish, reply, role, sse, usage_chunk


def answer(door: SyncDoor, **message: Any) -> Any:
    body = completion()
    body["choices"][0]["message"].update(message)
    door.server.play(reply(body))
    return door.create()


def test_what_was_not_sent_is_none_and_in_no_sparse_dump(door: SyncDoor) -> None:
    message = answer(door).choices[0].message
    absent = ("audio", "annotations", "function_call", "refusal", "tool_calls", "reasoning_content")
    assert [getattr(message, name) for name in absent] == [None] * 6
    assert message.model_dump(exclude_unset=True) == {"role": "assistant", "content": "Hello"}
    assert "reasoning_content" not in message.model_dump(), "some servers refuse the name in a history"


def test_audio_annotations_and_reasoning_are_objects(door: SyncDoor) -> None:
    audio = {"id": "a", "data": "AA", "expires_at": 1, "transcript": "said"}
    note = {"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}
    message = (
        answer(door, audio=audio, annotations=[note], reasoning_content="why", reasoning="so")
        .choices[0]
        .message
    )
    assert (message.audio.transcript, message.annotations[0].url_citation.url) == ("said", "u")
    assert (message.reasoning_content, message.reasoning) == ("why", "so")
    assert message.to_dict()["reasoning_content"] == "why"


def test_dumps_are_json_and_copies_are_equal(door: SyncDoor) -> None:
    got = answer(door)
    for dumped in (got.model_dump(), got.model_dump(mode="json"), got.to_dict()):
        assert json.loads(json.dumps(dumped))["choices"][0]["message"]["content"] == "Hello"
    for written in (got.to_json(), got.model_dump_json()):
        assert json.loads(written)["specclient"]["target"] == got.specclient.target
    for twin in (
        pickle.loads(pickle.dumps(got)),
        copy.deepcopy(got),
        copy.copy(got),
        got.model_copy(deep=True),
    ):
        assert twin == got
        assert isinstance(twin, specclient.types.ChatCompletion)
        assert twin.specclient == got.specclient


def test_chunks_are_dumped_and_pickled(door: SyncDoor) -> None:
    door.server.play(sse(role(), chunk("Hi"), finish(), usage_chunk()))
    for got in door.read():
        assert pickle.loads(pickle.dumps(got)) == got
        assert json.loads(got.to_json()).keys() >= {"id", "choices", "model"}


@pytest.mark.parametrize("as_dict", [False, True])
def test_an_answers_message_goes_back_as_it_came(door: SyncDoor, as_dict: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = answer(door, content=None, tool_calls=[call]).choices[0].message
    door.server.play(reply(completion()))
    back = message.model_dump(exclude_none=True) if as_dict else message
    door.create(messages=[*MESSAGES, back, {"role": "tool", "tool_call_id": "c", "content": "1"}])
    sent = door.server.requests[-1].json["messages"][1]
    assert (sent["role"], sent["tool_calls"]) == ("assistant", [call])


def test_errors_survive_copies_and_pickles(door: SyncDoor) -> None:
    door.server.play(
        error(400, "bad", {"x-request-id": "r"}, code="c", param="p"), sse(chunk("a"), done=False)
    )
    with pytest.raises(specclient.BadRequestError) as refused:
        door.create()
    with pytest.raises(specclient.IncompleteStreamError) as broken:
        door.read()
    timeout = specclient.APITimeoutError("late", limit="total")
    for twin in (copy.copy, lambda e: pickle.loads(pickle.dumps(e))):
        again = twin(refused.value)
        assert type(again) is specclient.BadRequestError
        assert (str(again), again.status_code, again.request_id) == (str(refused.value), 400, "r")
        assert (again.code, again.param, again.response.status_code) == ("c", "p", 400)
        assert twin(broken.value).partial == "a"
        assert (twin(timeout).limit, str(twin(timeout))) == ("total", "late")
