"""Calls of different kinds at one target have baselines, and an opinion of the gate, of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from test_client_gate import USAGE, sent

import specclient
from specclient.economics.stores import _stores
from tests.doors import MESSAGES, AsyncDoor, SyncDoor
from tests.server import ScriptedServer, completion, reply

KNOWN = "known text " * 30


@pytest.fixture(params=[SyncDoor, AsyncDoor])
def door(request: pytest.FixtureRequest) -> Iterator[Any]:
    _stores.clear()
    with ScriptedServer() as server:
        server.respond = lambda _: reply(completion("x", usage=USAGE))
        door = request.param(server)
        yield door
        door.close()
    _stores.clear()


def made(door: Any, **rest: Any) -> None:
    door.make(provider="openai", model="gpt-4o", economics={"gate": "auto"}, **rest)


def test_a_call_names_its_workload(door: Any) -> None:
    made(door)
    for name in ("edits", "chat", "edits", None, None):
        door.create(prediction=KNOWN, workload=name)
    assert [sent(request) for request in door.server.requests] == [True, True, False, True, False]
    assert not any("workload" in request.json for request in door.server.requests)


def test_a_block_names_it_and_a_call_wins(door: Any) -> None:
    made(door)

    async def calls() -> None:
        # One task, as an application has it: a runner's tasks all begin in the context of its first.
        async def ask(**rest: Any) -> None:
            answer = door.client.chat.completions.create(messages=MESSAGES, prediction=KNOWN, **rest)
            if door.kind == "async":
                await answer

        with specclient.workload("edits"):
            await ask()
            await ask(workload="chat")
            with specclient.workload(None):
                await ask()
        await ask(workload="edits")

    asyncio.run(calls()) if door.kind == "sync" else door.runner.run(calls())
    assert [sent(request) for request in door.server.requests] == [True, True, True, False]


def test_the_targets_tag_is_for_calls_that_name_none(door: Any) -> None:
    made(door, tags={"workload": "edits"})
    door.create(prediction=KNOWN)
    door.create(prediction=KNOWN, workload="edits")
    assert [sent(request) for request in door.server.requests] == [True, False]


def test_the_span_says_which(door: Any) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made(door, tracing=specclient.TracingOptions(tracer_provider=provider), tags={"workload": "tagged"})
    door.create(prediction=KNOWN, workload="named")
    door.create(prediction=KNOWN)
    found = [span.attributes["specclient.workload"] for span in exporter.get_finished_spans()]
    assert found == ["named", "tagged"]
    provider.shutdown()


def test_streams_alike(door: Any) -> None:
    from tests.server import chunk, finish, role, sse, usage_chunk

    door.server.respond = lambda _: sse(role(), chunk("x"), finish(), usage_chunk(**USAGE))
    made(door)
    for name in ("edits", "chat", "edits"):
        door.read(prediction=KNOWN, workload=name)
    assert [sent(request) for request in door.server.requests] == [True, True, False]


@pytest.mark.parametrize("name", ["", "x" * 101, 3])
def test_what_is_no_name_is_refused(door: Any, name: Any) -> None:
    made(door)
    with pytest.raises(ValueError, match="workload is a name"):
        door.create(prediction=KNOWN, workload=name)
    with pytest.raises(ValueError, match="workload is a name"), specclient.workload(name):
        pass
    assert door.server.requests == []


def test_another_thread_is_in_no_block() -> None:
    from specclient.economics.workload import current_workload

    seen: list[str | None] = []
    with specclient.workload("edits"):
        thread = threading.Thread(target=lambda: seen.append(current_workload()))
        thread.start()
        thread.join()
        assert current_workload() == "edits"
    assert seen == [None]
