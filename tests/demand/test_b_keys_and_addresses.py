"""B: what a request is made of: its address, its options, and a key that nobody may see."""

from __future__ import annotations

import base64
import json
import logging
import pickle
from typing import Any
from urllib.parse import quote

import pytest

import specclient
from tests.doors import SyncDoor
from tests.server import chunk, completion, error, finish, reply, role, sse


def test_b31_a_client_does_not_pickle_and_says_what_to_do(door: SyncDoor) -> None:
    with pytest.raises(TypeError, match="make a client in the other process"):
        pickle.dumps(door.client)


@pytest.mark.parametrize("provider", ["openai", "azure", "groq", "cerebras", "vllm", "openai_compatible"])
@pytest.mark.parametrize("given", [None, {"include_usage": False}, {"include_obfuscation": False}])
def test_b37_b38_stream_options(door: SyncDoor, provider: str, given: Any) -> None:
    url = door.server.origin if provider == "azure" else door.server.url
    door.make(provider=provider, model="gpt-4o", base_url=url)
    options = {} if given is None else {"stream_options": given}
    door.server.play(sse(chunk("a"), finish()), reply(completion()))
    door.read(**options)
    door.create(**options)
    streamed, plain = (request.json for request in door.server.requests)
    assert "stream_options" not in plain
    expected = dict(given or {})
    if provider in ("openai", "azure", "cerebras", "vllm"):
        expected.setdefault("include_usage", True)
    assert streamed.get("stream_options", {}) == expected


SECRET = "sk-sentinel/0123456789+abc"


ECHOES = {
    "B39": SECRET,
    "B39-header": f"Bearer {SECRET}",
    "B39-quoted": quote(SECRET, safe=""),
    "B39-base64": base64.b64encode(SECRET.encode()).decode(),
    "B39-json": json.dumps(SECRET).replace("/", "\\/"),
    "B39-cut": SECRET[:20] + "...",
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_key_that_is_echoed_is_shown_nowhere(
    door: SyncDoor, caplog: pytest.LogCaptureFixture, echo: str
) -> None:
    caplog.set_level(logging.DEBUG)
    door.make(api_key=SECRET)
    answers = [
        error(401, f"Incorrect API key provided: {echo}."),
        reply(f"<html><title>{echo}</title>".encode(), 401),
        reply({"detail": [{"loc": ["header"], "msg": echo, "input": {echo: echo}}]}, 422),
        sse(role(), {"error": {"message": f"bad key {echo}", "code": 401}}),
    ]
    for number, answer in enumerate(answers):
        door.server.play(answer)
        with pytest.raises(specclient.APIError) as caught:
            door.read() if number == 3 else door.create()
        shown = [str(caught.value), repr(caught.value), str(caught.value.__dict__), repr(door.client)]
        shown += [repr(door.client.target), repr(getattr(caught.value, "response", "")), caplog.text]
        response = getattr(caught.value, "response", None)
        if response is not None:
            shown += [response.text, repr(response.headers), repr(response.request.headers)]
        for text in shown:
            assert SECRET not in text
            assert echo not in text


def test_b39_a_key_echoed_in_a_header(door: SyncDoor) -> None:
    door.make(api_key=SECRET)
    for answer in (error(401, "no", {"x-echo": SECRET}), reply({"error": "no"}, headers={"x-echo": SECRET})):
        door.server.play(answer)
        with pytest.raises(specclient.APIError) as caught:
            door.create()
        assert SECRET not in str(caught.value.__dict__)


URLS = ["{}/v1", "{}/v1/", "{}", "{}/", "{}/v1/chat/completions", "{}/v1//"]


@pytest.mark.parametrize("spelling", URLS)
@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "openai", "llama_cpp", "mistral"])
def test_b41_every_spelling_of_an_address(door: SyncDoor, provider: str, spelling: str) -> None:
    door.make(provider=provider, base_url=spelling.format(door.server.origin))
    door.server.play(reply(completion()))
    door.create()
    assert door.server.requests[-1].target == "/v1/chat/completions"


WHOLE = "{}/openai/deployments/d/chat/completions?api-version="


def test_b41_azures_whole_addresses(door: SyncDoor) -> None:
    for version, outcome in (("2024-10-21", "withheld"), ("2025-01-01-preview", "forwarded")):
        door.make(provider="azure", model="gpt-4o", base_url=WHOLE.format(door.server.origin) + version)
        door.server.play(reply(completion()))
        assert door.create(prediction="known").specclient.prediction.outcome == outcome
        assert door.server.requests[-1].target == WHOLE.format("") + version


@pytest.mark.parametrize("spelling", ["{}/api/v3", "{}/api/v3/", "{}/api/v3/chat/completions"])
def test_b41_a_path_of_ones_own_stays(door: SyncDoor, spelling: str) -> None:
    door.make(base_url=spelling.format(door.server.origin))
    door.server.play(reply(completion()))
    door.create()
    assert door.server.requests[-1].target == "/api/v3/chat/completions"
