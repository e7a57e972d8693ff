"""Calls that wait for a next try: one thread ends those that wait in vain, and is there for no one else."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from specclient.middleware import given_up, pending, sdk_retries, wrap
from specclient.middleware.given_up import Waiting
from tests import server as scripted
from tests.server import ScriptedServer

NAME = "specclient-given-up"


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    made = Waiting()
    monkeypatch.setattr(pending, "WAITING", made)
    return made


def test_the_first_to_come_due_is_ended_first(waiting: Waiting) -> None:
    ended: list[str] = []
    done = threading.Event()

    def late() -> None:
        ended.append("late")
        done.set()

    waiting.add(late, 0.2)
    waiting.add(lambda: ended.append("early"), 0.0)
    assert done.wait(10)
    assert ended == ["early", "late"]


def test_what_is_taken_back_is_let_go_of_and_the_thread_ends(waiting: Waiting) -> None:
    tickets = [waiting.add(lambda: pytest.fail("it was taken back"), 60) for _ in range(3)]
    thread = waiting._thread
    assert thread is not None
    for ticket in tickets:
        waiting.take_back(ticket)
        assert ticket.give_up is None
        waiting.take_back(ticket)
    thread.join(10)
    assert not thread.is_alive()
    waiting.take_back(waiting.add(lambda: None, 60))


def test_a_fault_of_one_costs_no_other(waiting: Waiting) -> None:
    done = threading.Event()

    def broken() -> None:
        raise ZeroDivisionError

    waiting.add(broken, 0)
    waiting.add(done.set, 0.01)
    assert done.wait(10)


def test_hundreds_wait_in_one_thread(server: ScriptedServer, waiting: Waiting) -> None:
    server.respond = lambda _: scripted.error(503, "busy")
    before = len(threads())

    async def main() -> None:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            wrap(client, provider="openai")
            headers = {sdk_retries.RETRY_COUNT: "0"}
            body = {"model": "m", "messages": []}
            await asyncio.gather(
                *(client.post("/chat/completions", json=body, headers=headers) for _ in range(300))
            )

    asyncio.run(main())
    assert waiting._open == 300
    assert len(threads()) == before + 1
    for _, _, ticket in list(waiting._tickets):
        waiting.take_back(ticket)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_a_thread_of_its_own() -> None:
    ticket = given_up.WAITING.add(lambda: None, 60)
    child = os.fork()
    if not child:
        code = 1
        try:
            done = threading.Event()
            given_up.WAITING.add(done.set, 0)
            code = 0 if done.wait(10) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    given_up.WAITING.take_back(ticket)


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({}, 13.0, 13.0),
        ({"retry-after": "40"}, 45.0, 45.0),
        ({"retry-after-ms": "40000"}, 45.0, 45.0),
        ({"retry-after": "date"}, 40.0, 45.0),
        ({"retry-after": "7200"}, 13.0, 13.0),
        ({"retry-after": "soon"}, 13.0, 13.0),
    ],
    ids=str,
)
def test_a_call_waits_as_long_as_the_server_asks(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], least: float, most: float
) -> None:
    waits: list[float] = []
    noted = SimpleNamespace(add=lambda _give_up, seconds: waits.append(seconds))
    monkeypatch.setattr(pending, "WAITING", noted)
    if headers.get("retry-after") == "date":
        headers = {"retry-after": formatdate(time.time() + 40, usegmt=True)}
    call: Any = SimpleNamespace(give_up=lambda: None)
    contextvars.copy_context().run(pending.park, call, None, headers, 8.0, counted=True)
    assert least <= waits.pop() <= most
