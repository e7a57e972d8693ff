"""Keys, prompts and predictions are shown by no repr, no error and no log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import specclient
from specclient.client.calls import Extras
from specclient.core.destination import CallOptions
from specclient.core.send import Send
from specclient.core.shaping import KnownText
from specclient.edit.run import EditRun
from specclient.textfile import FileImage
from specclient.tracing import CallStart, ResponseFacts
from specclient_engine.api import GenerationRequest
from specclient_providers import resolve
from tests.doors import SyncDoor
from tests.server import ScriptedServer, Stall, chunk, completion, data, error, finish, reply, sse, stream

SECRET = "SENTINEL-0123456789-and-more"
MESSAGES = [{"role": "user", "content": SECRET}]
ADDRESS = f"https://user:{SECRET}@host/v1"


def planned(**more: Any) -> Any:
    return specclient.plan(
        {"messages": MESSAGES, "prediction": SECRET}, provider="fireworks", model="m", **more
    )


REPRS = {
    "Plan": planned,
    "Plan without": lambda: planned().without_prediction(planned().reasons[0]),
    "Plan corpus": lambda: specclient.plan(
        {"messages": MESSAGES, "prediction": SECRET},
        provider="sglang",
        model="m",
        base_url=ADDRESS,
        use_corpus=True,
        overrides={"speculation": {"method": "NGRAM"}},
    ),
    "Prediction": lambda: specclient.Prediction(SECRET),
    "KnownText": lambda: KnownText(specclient.Prediction(SECRET), SECRET, SECRET),
    "FileImage": lambda: FileImage.from_bytes(SECRET.encode()),
    "GenerationRequest": lambda: GenerationRequest(prompt_ids=[48151623], predictions=[SECRET]),
    "Extras": lambda: Extras(extra_headers={"a": SECRET}, extra_body={"b": SECRET}),
    "CallOptions": lambda: CallOptions(headers={"a": SECRET}),
    "Send": lambda: Send("POST", "https://h/v1", {"a": SECRET}, SECRET.encode(), plan=planned()),
    "CallStart": lambda: CallStart(provider="p", body={"messages": MESSAGES}),
    "ResponseFacts": lambda: ResponseFacts(output=[{"content": SECRET}]),
    "Send with a key in its address": lambda: Send("POST", f"https://u:{SECRET}@h/v1?key={SECRET}", {}),
    "EndpointFacts": lambda: resolve("vllm", base_url=ADDRESS),
    "Capabilities": lambda: specclient.capabilities("vllm", base_url=ADDRESS),
    "Client": lambda: specclient.Client(provider="vllm", base_url=ADDRESS, model="m", api_key=SECRET),
    "Target": lambda: (
        specclient.Client(
            provider="vllm",
            base_url=ADDRESS,
            model="m",
            api_key=SECRET,
            headers={"a": SECRET},
            query={"b": SECRET},
            proxy=ADDRESS,
        ).target
    ),
}


@pytest.mark.parametrize("make", REPRS.values(), ids=REPRS)
def test_no_repr_shows_it(make: Any) -> None:
    value = make()
    for text in (repr(value), str(value), f"{[value]}", f"{value!r:.10000}"):
        assert SECRET not in text
        assert "48151623" not in text


def test_an_edit_shows_nothing(tmp_path: Any, door: SyncDoor) -> None:
    path = tmp_path / "f.txt"
    path.write_text(SECRET)
    assert SECRET not in repr(EditRun.start(path, SECRET))
    door.server.play(sse(chunk(SECRET), finish()), sse(chunk(SECRET[:9]), finish("length")))
    assert SECRET not in repr(door.run(door.client.edit(path, SECRET)))
    with pytest.raises(specclient.IncompleteOutput) as caught:
        door.run(door.client.edit(path, SECRET))
    assert SECRET[:9] not in repr(caught.value) + str(caught.value)


FAULTS: dict[str, Any] = {
    "quoted": error(400, f"Cannot parse {SECRET} here"),
    "quoted twice": error(422, f"{SECRET}: {SECRET}", param=SECRET),
    "page": reply(f"<html><title>{SECRET}</title></html>".encode(), 502),
    "in the stream": sse(chunk("a"), {"error": {"message": f"no {SECRET}"}}),
    "no JSON": stream(b"data: {" + SECRET.encode() + b"\n\n"),
    "cut off": sse(chunk(SECRET), done=False),
    "silent": stream(data(chunk(SECRET)), Stall()),
    "not an answer": reply({"text": SECRET}),
}


@pytest.mark.parametrize("answer", FAULTS.values(), ids=FAULTS)
def test_no_error_and_no_log_shows_it(door: SyncDoor, caplog: pytest.LogCaptureFixture, answer: Any) -> None:
    caplog.set_level(logging.DEBUG)
    door.make(provider="fireworks", api_key="sk-" + SECRET, max_retries=0, timeout={"content_idle": 0.1})
    door.server.play(answer)
    with pytest.raises(specclient.APIError) as caught:
        door.read(messages=MESSAGES, prediction=SECRET)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert SECRET not in str(seen) + repr(seen)
        seen = seen.__cause__
    assert SECRET not in caplog.text
    assert SECRET not in str(caught.value.report)


def test_a_key_in_the_address_is_used_and_shown_nowhere(
    door: SyncDoor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    door.make(base_url=f"{door.server.url}?key={SECRET}", query={"sig": SECRET}, max_retries=0)
    door.server.play(error(400, f"bad {SECRET}"))
    with pytest.raises(specclient.BadRequestError) as caught:
        door.create()
    assert door.server.requests[0].query == {"key": SECRET, "sig": SECRET}
    error_ = caught.value
    assert SECRET not in f"{error_.response.request.url} {error_.request.url} {error_.request!r}"
    assert SECRET not in caplog.text


def test_a_call_that_goes_well_logs_nothing_of_itself(
    server: ScriptedServer, door: SyncDoor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    door.make(provider="fireworks", api_key="sk-" + SECRET)
    door.server.play(reply(completion(SECRET)), sse(chunk(SECRET), finish()))
    answer = door.create(messages=MESSAGES, prediction=SECRET)
    door.read(
        messages=MESSAGES, prediction=SECRET, tools=[{"type": "function", "function": {"name": SECRET}}]
    )
    assert SECRET not in caplog.text
    assert SECRET not in answer.specclient.model_dump_json()
