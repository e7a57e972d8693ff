"""A client in a forked process: HTTP goes on, the engine says that it cannot."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import specclient
from specclient.core import pools
from tests.client.fake_engine import FakeEngine
from tests.doors import MESSAGES
from tests.server import ScriptedServer, completion, reply

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def told_by_child(ask: Callable[[], str]) -> str:
    """What `ask` comes to in a forked process, an error as its name and text."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.Queue()

    def run() -> None:
        try:
            answers.put(ask())
        except Exception as error:
            answers.put(f"{type(error).__name__}: {error}")

    child = context.Process(target=run)
    child.start()
    try:
        told: str = answers.get(timeout=30)
        return told
    finally:
        child.join(10)


def text(client: Any) -> str:
    found: str = client.chat.completions.create(messages=MESSAGES).choices[0].message.content
    return found


def http_client(server: ScriptedServer) -> specclient.Client:
    server.respond = lambda _: reply(completion())
    return specclient.Client(provider="openai_compatible", base_url=server.url, model="m", api_key="k")


def test_the_engine_of_the_parent_is_refused_and_http_goes_on(server: ScriptedServer) -> None:
    with (
        http_client(server) as over_http,
        specclient.Client(provider="local", engine=FakeEngine("x")) as client,
    ):
        assert (text(client), text(over_http)) == ("x", "Hello")
        for ask in (
            lambda: text(client),
            lambda: text(specclient.Client(provider="local", engine=FakeEngine("x"))),
            lambda: text(specclient.Client(provider="local", model="smollm2")),
        ):
            said = told_by_child(ask)
            assert said.startswith("ConfigError: The embedded engine cannot run in a fork")
            assert "get_context('spawn')" in said
        assert told_by_child(lambda: text(over_http)) == "Hello"
        assert text(client) == "x", "the parent goes on"


def test_a_fallback_takes_over_from_the_engine_in_a_fork(server: ScriptedServer, tmp_path: Any) -> None:
    path = tmp_path / "specclient.toml"
    path.write_text(
        '[targets.local]\nprovider = "local"\nfallback = ["box"]\n'
        f'[targets.box]\nprovider = "vllm"\nmodel = "m"\nbase_url = "{server.url}"\n'
    )
    server.respond = lambda _: reply(completion())
    with specclient.Client("local", config=path, engine=FakeEngine("x")) as client:
        assert text(client) == "x"
        assert told_by_child(lambda: text(client)) == "Hello"


def test_a_lock_that_another_thread_held_at_the_fork_holds_nobody(server: ScriptedServer) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        locks = [each._lock for each in pools._everywhere]
        for lock in locks:
            lock.acquire()
        held.set()
        done.wait(30)
        for lock in locks:
            lock.release()

    with http_client(server) as client:
        assert text(client) == "Hello"
        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(10)
        try:
            assert told_by_child(lambda: text(client)) == "Hello"
        finally:
            done.set()
            holder.join()
