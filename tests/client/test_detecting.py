"""A target that asks for it learns once, from the server's public pages, how that server drafts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from specclient.core import detecting
from specclient_providers.detection import Detections
from tests import server as scripted
from tests.doors import SyncDoor
from tests.server import Answer, Request, ScriptedServer

KNOWN = "def total(items):\n    return sum(items)\n"
ASK = [{"role": "user", "content": f"Repeat:\n{KNOWN}"}]
PAGES: dict[str, Any] = {
    "/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]},
    "/version": {"version": "0.33.0"},
    "/server_info": {"vllm_config": {"speculative_config": {"method": "ngram"}}},
}


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(detecting, "_memory", Detections())
    return


def vllm(server: ScriptedServer, pages: dict[str, Any]) -> None:
    def respond(request: Request) -> Answer:
        if request.path == "/v1/chat/completions":
            return scripted.reply(scripted.completion("done"))
        found = pages.get(request.path)
        return scripted.error(404, "Not Found") if found is None else scripted.reply(found)

    server.respond = respond


def chats(server: ScriptedServer) -> list[str]:
    return [request.path for request in server.requests if request.path == "/v1/chat/completions"]


@pytest.mark.parametrize("provider", ["vllm", "openai_compatible"])
def test_a_finding_opens_the_way_through_the_prompt(
    door: SyncDoor, server: ScriptedServer, provider: str
) -> None:
    vllm(server, PAGES)
    door.make(provider=provider, detect=True)
    first = door.create(messages=ASK, prediction=KNOWN).specclient
    assert first.prediction.outcome == "via_prompt"
    assert "vLLM" in first.prediction.reasons[0].text
    asked = len(server.requests)
    second = door.create(messages=ASK, prediction=KNOWN).specclient
    assert second.prediction.outcome == "via_prompt"
    assert len(server.requests) == asked + 1


def test_a_second_client_does_not_ask_again(door: SyncDoor, server: ScriptedServer) -> None:
    vllm(server, PAGES)
    door.make(provider="vllm", detect=True)
    door.create(messages=ASK, prediction=KNOWN)
    asked = len(server.requests)
    door.make(provider="vllm", detect=True)
    door.create(messages=ASK, prediction=KNOWN)
    assert len(server.requests) == asked + 1


def test_without_leave_nothing_is_asked(door: SyncDoor, server: ScriptedServer) -> None:
    vllm(server, PAGES)
    door.make(provider="vllm")
    report = door.create(messages=ASK, prediction=KNOWN).specclient
    assert report.prediction.reasons[0].code == "speculation_unknown"
    assert len(server.requests) == 1


def test_what_the_configuration_says_wins(door: SyncDoor, server: ScriptedServer) -> None:
    vllm(server, PAGES)
    door.make(provider="vllm", detect=True, overrides={"speculation": {"method": "eagle3"}})
    report = door.create(messages=ASK, prediction=KNOWN).specclient
    assert report.prediction.reasons[0].code == "drafts_elsewhere"
    assert len(server.requests) == 1


def test_a_server_that_tells_nothing_is_taken_as_configured(door: SyncDoor, server: ScriptedServer) -> None:
    vllm(server, {})
    door.make(provider="openai_compatible", detect=True)
    report = door.create(messages=ASK, prediction=KNOWN).specclient
    assert (report.provider, report.prediction.outcome) == ("openai_compatible", "withheld")
    assert len(chats(server)) == 1


def test_a_page_that_is_no_json_does_no_harm(door: SyncDoor, server: ScriptedServer) -> None:
    def respond(request: Request) -> Answer:
        if request.path == "/v1/chat/completions":
            return scripted.reply(scripted.completion("done"))
        return scripted.reply(b"<html>hello</html>")

    server.respond = respond
    door.make(provider="openai_compatible", detect=True)
    assert door.create(messages=ASK).choices[0].message.content == "done"


def test_the_key_goes_along_and_no_prompt_does(door: SyncDoor, server: ScriptedServer) -> None:
    vllm(server, PAGES)
    door.make(provider="vllm", detect=True)
    door.create(messages=ASK, prediction=KNOWN)
    for request in server.requests[:-1]:
        assert request.method == "GET"
        assert request.body == b""
        assert request.headers["authorization"].startswith("Bearer ")


def test_a_stream_is_planned_after_the_finding_too(door: SyncDoor, server: ScriptedServer) -> None:
    pages = PAGES

    def respond(request: Request) -> Answer:
        if request.path == "/v1/chat/completions":
            return scripted.sse(scripted.chunk("done"), scripted.finish(), scripted.usage_chunk())
        found = pages.get(request.path)
        return scripted.error(404, "Not Found") if found is None else scripted.reply(found)

    server.respond = respond
    door.make(provider="openai_compatible", detect=True)
    chunks = door.read(messages=ASK, prediction=KNOWN)
    assert chunks[-1].specclient.prediction.outcome == "via_prompt"
    assert server.requests[-1].json["stream_options"] == {"include_usage": True}
