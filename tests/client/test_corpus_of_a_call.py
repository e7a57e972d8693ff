"""A draft corpus is loaded for a call and removed after it, on every way out, sync and async."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

import specclient
from tests import server as scripted
from tests.doors import AsyncDoor, SyncDoor
from tests.server import Answer, Request, ScriptedServer

KNOWN = "def total(items):\n    return sum(items)\n"
ANSWER = scripted.completion("done")


class Sglang:
    """A server that drafts from corpora, as far as a client can see."""

    def __init__(self, server: ScriptedServer) -> None:
        self.loaded: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self.refuse_load = False
        self.answer: Answer = scripted.reply(ANSWER)
        self.seen_while_loaded: list[bool] = []
        self._lock = threading.Lock()
        server.respond = self.respond

    def respond(self, request: Request) -> Answer:
        with self._lock:
            self.calls.append(request.path)
            if request.path == "/add_external_corpus":
                if self.refuse_load:
                    return scripted.reply({"success": False, "message": "not enabled"}, 400)
                assert request.json["corpus_id"] not in self.loaded
                self.loaded[request.json["corpus_id"]] = request.json["documents"]
                return scripted.reply({"success": True, "loaded_token_count": 9})
            if request.path == "/remove_external_corpus":
                del self.loaded[request.json["corpus_id"]]
                return scripted.reply({"success": True})
            self.seen_while_loaded.append(bool(self.loaded))
            return self.answer


@pytest.fixture
def sglang(server: ScriptedServer) -> Sglang:
    return Sglang(server)


def client(door: SyncDoor, **arguments: Any) -> Any:
    return door.make(
        provider="sglang",
        overrides={"speculation": {"method": "NGRAM"}},
        max_retries=0,
        **{"use_corpus": True, **arguments},
    )


def test_the_text_is_loaded_for_the_call_and_removed_after_it(door: SyncDoor, sglang: Sglang) -> None:
    client(door)
    answer = door.create(prediction=KNOWN)
    report = answer.specclient
    assert report.prediction.outcome == "via_corpus"
    assert any(note.code == "corpus_is_global" for note in report.notes)
    assert sglang.calls == ["/add_external_corpus", "/v1/chat/completions", "/remove_external_corpus"]
    assert sglang.seen_while_loaded == [True]
    assert sglang.loaded == {}


def test_a_stream_holds_the_text_until_it_is_over(door: SyncDoor, sglang: Sglang) -> None:
    client(door)
    sglang.answer = scripted.sse(
        scripted.role(), scripted.chunk("do"), scripted.chunk("ne"), scripted.finish()
    )
    assert door.text(prediction=KNOWN) == "done"
    assert sglang.calls[-1] == "/remove_external_corpus"
    assert sglang.loaded == {}


def test_leaving_a_stream_early_removes_the_text(door: SyncDoor, sglang: Sglang) -> None:
    client(door)
    sglang.answer = scripted.sse(*[scripted.chunk("x") for _ in range(20)], scripted.finish())
    stream = door.open(prediction=KNOWN)
    next(iter(stream))
    stream.close()
    assert sglang.loaded == {}


def test_an_error_removes_the_text(door: SyncDoor, sglang: Sglang) -> None:
    client(door)
    sglang.answer = scripted.error(500, "out of memory")
    with pytest.raises(specclient.InternalServerError):
        door.create(prediction=KNOWN)
    assert sglang.loaded == {}


def test_a_server_that_will_not_load_is_asked_again_without(door: SyncDoor, sglang: Sglang) -> None:
    client(door)
    sglang.refuse_load = True
    answer = door.create(prediction=KNOWN)
    assert answer.specclient.prediction.outcome == "withheld"
    assert answer.specclient.prediction.reasons[0].code == "refused_live"
    assert sglang.calls == ["/add_external_corpus", "/v1/chat/completions"]
    door.create(prediction=KNOWN)
    assert sglang.calls[2:] == ["/v1/chat/completions"]


def test_without_leave_nothing_is_loaded(door: SyncDoor, sglang: Sglang) -> None:
    client(door, use_corpus=False)
    answer = door.create(prediction=KNOWN)
    assert answer.specclient.prediction.outcome == "withheld"
    assert answer.specclient.prediction.reasons[0].code == "corpus_not_allowed"
    assert sglang.calls == ["/v1/chat/completions"]


def test_the_known_text_is_not_in_the_answers_request(
    door: SyncDoor, sglang: Sglang, server: ScriptedServer
) -> None:
    client(door)
    door.create(prediction=KNOWN)
    load, chat, _ = server.requests
    assert load.json["documents"] == [KNOWN]
    assert "sum(items)" not in json.dumps(chat.json)
    assert load.headers["authorization"] == chat.headers["authorization"]


def test_calls_at_once_share_one_load(server: ScriptedServer, sglang: Sglang) -> None:
    both_in = threading.Barrier(2)
    answer = sglang.answer

    def respond(request: Request) -> Answer:
        found = sglang.respond(request)
        if request.path == "/v1/chat/completions":
            both_in.wait(10)
        return found if found is not answer else answer

    server.respond = respond
    door = SyncDoor(server)
    made = client(door)
    try:
        threads = [threading.Thread(target=door.create, kwargs={"prediction": KNOWN}) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    finally:
        door.close()
    assert made is not None
    assert sglang.calls.count("/add_external_corpus") == 1
    assert sglang.calls.count("/remove_external_corpus") == 1
    assert sglang.loaded == {}


def test_known_text_is_put_into_the_prompt_where_that_is_allowed(
    door: SyncDoor, server: ScriptedServer
) -> None:
    assert isinstance(door, SyncDoor | AsyncDoor)
    door.make(provider="vllm", overrides={"speculation": {"method": "ngram"}}, put_in_prompt=True)
    server.play(scripted.reply(ANSWER))
    answer = door.create(prediction=KNOWN)
    assert answer.specclient.prediction.outcome == "via_prompt"
    assert server.requests[0].json["messages"][-1]["content"].count(KNOWN) == 1
