"""A draft corpus is loaded for a call and removed after it, on every way out, sync and async."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import specclient
from tests import server as scripted
from tests.doors import AsyncDoor, SyncDoor
from tests.server import Answer, Close, Request, ScriptedServer

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
                self.loaded.pop(request.json["corpus_id"], None)
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


class Gate:
    """Two calls at once: the second begins while the server is still loading the first's text."""

    def __init__(self, door: SyncDoor, sglang: Sglang, server: ScriptedServer) -> None:
        self.door, self.sglang = door, sglang
        self.loading, self.finish = threading.Event(), threading.Event()
        self.load_answer: Answer | None = None
        server.respond = self.respond

    def respond(self, request: Request) -> Answer:
        first = request.path == "/add_external_corpus" and not self.loading.is_set()
        if first:
            self.loading.set()
            assert self.finish.wait(10)
            if self.load_answer is not None:
                self.sglang.calls.append(request.path)
                return self.load_answer
        return self.sglang.respond(request)

    def run(self, *, cancel: int | None = None, texts: tuple[str, str] = (KNOWN, KNOWN)) -> list[Any]:
        """The two calls' answers or errors; `cancel` cancels the first (0) or the second (1) meanwhile."""
        if isinstance(self.door, AsyncDoor):
            return list(self.door.runner.run(self._tasks(cancel, texts)))
        return self._threads(texts)

    def _ask(self, text: str) -> Any:
        create = self.door.client.chat.completions.create
        return create(messages=[{"role": "user", "content": "Go."}], prediction=text)

    async def _tasks(self, cancel: int | None, texts: tuple[str, str]) -> list[Any]:
        first = asyncio.ensure_future(self._ask(texts[0]))
        await asyncio.to_thread(self.loading.wait, 10)
        second = asyncio.ensure_future(self._ask(texts[1]))
        for _ in range(20):
            await asyncio.sleep(0)
        assert self.sglang.calls == []
        if cancel is not None:
            (first, second)[cancel].cancel()
            await asyncio.sleep(0)
        self.finish.set()
        return list(await asyncio.gather(first, second, return_exceptions=True))

    def _threads(self, texts: tuple[str, str]) -> list[Any]:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._ask, texts[0])
            assert self.loading.wait(10)
            second = pool.submit(self._ask, texts[1])
            assert wait_until(lambda: second.running())
            assert self.sglang.calls == []
            self.finish.set()
            return [future.exception(20) or future.result() for future in (first, second)]


def wait_until(true: Callable[[], bool]) -> bool:
    for _ in range(1000):
        if true():
            return True
        time.sleep(0.005)
    return False


@pytest.fixture
def gate(door: SyncDoor, sglang: Sglang, server: ScriptedServer) -> Gate:
    client(door)
    return Gate(door, sglang, server)


def outcomes(answers: list[Any]) -> list[str]:
    return [answer.specclient.prediction.outcome for answer in answers]


def test_the_second_of_two_calls_waits_for_the_load_of_the_first(gate: Gate, sglang: Sglang) -> None:
    assert outcomes(gate.run()) == ["via_corpus", "via_corpus"]
    assert sglang.seen_while_loaded == [True, True]
    loads = [path for path in sglang.calls if path == "/add_external_corpus"]
    assert len(loads) == sglang.calls.count("/remove_external_corpus")
    assert sglang.calls[0] == "/add_external_corpus"
    assert sglang.loaded == {}


def test_two_texts_are_loaded_one_after_the_other(gate: Gate, sglang: Sglang) -> None:
    assert outcomes(gate.run(texts=(KNOWN, "another text\n"))) == ["via_corpus", "via_corpus"]
    assert sglang.seen_while_loaded == [True, True]
    assert sglang.calls.count("/add_external_corpus") == 2
    assert sglang.loaded == {}


def test_a_load_that_is_refused_is_refused_for_those_who_wait_too(gate: Gate, sglang: Sglang) -> None:
    gate.load_answer = scripted.reply({"success": False, "message": "not enabled"}, 400)
    assert outcomes(gate.run()) == ["withheld", "withheld"]
    assert sglang.calls.count("/add_external_corpus") == 1
    assert "/remove_external_corpus" not in sglang.calls


def test_a_load_that_breaks_off_is_tried_by_the_one_who_waits(gate: Gate, sglang: Sglang) -> None:
    gate.load_answer = Answer((Close(),))
    first, second = gate.run()
    assert isinstance(first, specclient.APIConnectionError)
    assert outcomes([second]) == ["via_corpus"]
    assert sglang.loaded == {}


@pytest.mark.parametrize("cancelled", [0, 1])
def test_a_cancelled_call_neither_holds_a_text_nor_the_other_call(
    gate: Gate, sglang: Sglang, cancelled: int
) -> None:
    if not isinstance(gate.door, AsyncDoor):
        pytest.skip("a thread cannot be cancelled")
    answers = gate.run(cancel=cancelled)
    assert isinstance(answers[cancelled], asyncio.CancelledError)
    assert outcomes([answers[1 - cancelled]]) == ["via_corpus"]
    calls = sglang.calls
    assert calls.count("/add_external_corpus") == calls.count("/remove_external_corpus") == 2 - cancelled


def test_a_server_that_loads_for_somebody_else_is_asked_again(
    door: SyncDoor, sglang: Sglang, server: ScriptedServer
) -> None:
    client(door)
    busy = iter(
        [scripted.reply({"success": False, "message": "Another corpus load is already in progress."}, 400)]
    )

    def respond(request: Request) -> Answer:
        if request.path == "/add_external_corpus" and (found := next(busy, None)) is not None:
            return found
        return sglang.respond(request)

    server.respond = respond
    assert outcomes([door.create(prediction=KNOWN)]) == ["via_corpus"]
    assert sglang.loaded == {}


def test_the_corpus_is_loaded_below_the_path_that_the_server_is_served_at(
    door: SyncDoor, sglang: Sglang, server: ScriptedServer
) -> None:
    def respond(request: Request) -> Answer:
        return sglang.respond(replace(request, target=request.target.removeprefix("/team/sglang")))

    server.respond = respond
    client(door, base_url=f"{server.origin}/team/sglang/v1")
    assert outcomes([door.create(prediction=KNOWN)]) == ["via_corpus"]
    assert all(request.path.startswith("/team/sglang/") for request in server.requests)


def test_known_text_is_put_into_the_prompt_where_that_is_allowed(
    door: SyncDoor, server: ScriptedServer
) -> None:
    assert isinstance(door, SyncDoor | AsyncDoor)
    door.make(provider="vllm", overrides={"speculation": {"method": "ngram"}}, put_in_prompt=True)
    server.play(scripted.reply(ANSWER))
    answer = door.create(prediction=KNOWN)
    assert answer.specclient.prediction.outcome == "via_prompt"
    assert server.requests[0].json["messages"][-1]["content"].count(KNOWN) == 1
