"""Nothing is left behind: connections, tasks, threads, spans, whichever way a call ends."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import threading
import weakref
from typing import Any

import pytest

import specclient
from tests.doors import KEY, MESSAGES, SyncDoor, text_of
from tests.server import (
    DONE,
    ScriptedServer,
    Stall,
    Wait,
    chunk,
    completion,
    data,
    error,
    finish,
    reply,
    role,
    sse,
    stream,
    usage_chunk,
)


def arguments(server: ScriptedServer, **more: Any) -> dict[str, Any]:
    return {"provider": "openai_compatible", "base_url": server.url, "model": "m", "api_key": KEY, **more}


def test_leaving_early_fifty_times_with_a_pool_of_two(door: SyncDoor) -> None:
    door.make(max_connections=2)
    door.server.respond = lambda _: stream(data(chunk("a")), data(chunk("b")), Stall())
    for _ in range(50):
        opened = door.open()
        for got in opened:
            assert got.choices[0].delta.content == "a"
            break
        opened.close()
    door.server.wait_for(lambda server: server.left == 50)


def test_dropping_fifty_streams_with_a_pool_of_two(door: SyncDoor) -> None:
    door.make(max_connections=2)
    door.server.respond = lambda _: stream(data(chunk("a")), data(chunk("b")), Stall())

    async def drop_all() -> None:
        for _ in range(50):
            got = await door.client.chat.completions.create(messages=MESSAGES, stream=True)
            async for _first in got:
                break
            del got
        await asyncio.sleep(0.05)  # the loop closes what was dropped last

    if door.kind == "async":
        door.run(drop_all())
    else:
        for _ in range(50):
            for _first in door.open():
                break
    door.server.wait_for(lambda server: server.left == 50)


def test_a_stream_that_is_never_read(door: SyncDoor) -> None:
    door.make(max_connections=1)
    door.server.respond = lambda _: stream(data(chunk("a")), Stall())
    for _ in range(3):
        opened = door.open()
        opened.close()
    door.open()
    gc.collect()
    if door.kind == "async":
        door.run(asyncio.sleep(0.05))
    door.server.wait_for(lambda server: server.left == 4)


def test_an_error_in_the_callers_loop(door: SyncDoor) -> None:
    door.server.play(stream(data(chunk("a")), Stall()))

    async def fail() -> None:
        async with await door.client.chat.completions.create(messages=MESSAGES, stream=True) as got:
            async for _ in got:
                raise ValueError("mine")

    def fail_in_a_plain_loop() -> None:
        with door.open().stream as got:
            for _ in got:
                raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        door.run(fail()) if door.kind == "async" else fail_in_a_plain_loop()
    door.server.wait_for(lambda server: server.left == 1)


def test_a_closed_client_leaves_no_connection(door: SyncDoor) -> None:
    door.server.play(*[reply(completion()) for _ in range(3)])
    for _ in range(3):
        door.create()
    assert door.server.open_connections == 1
    door.run(door.client.close())
    door.server.wait_for(lambda server: server.open_connections == 0)


def test_a_dropped_client_leaves_no_connection(server: ScriptedServer) -> None:
    server.play(reply(completion()))
    client = specclient.Client(**arguments(server))
    client.chat.completions.create(messages=MESSAGES)
    gone = weakref.ref(client)
    del client
    gc.collect()
    assert gone() is None
    server.wait_for(lambda s: s.open_connections == 0)


def test_a_dropped_async_client_leaves_no_connection(server: ScriptedServer) -> None:
    server.play(reply(completion()))

    async def main() -> None:
        client = specclient.AsyncClient(**arguments(server))
        await client.chat.completions.create(messages=MESSAGES)
        del client
        gc.collect()
        await asyncio.to_thread(server.wait_for, lambda s: s.open_connections == 0)

    asyncio.run(main())


def test_one_async_client_over_several_event_loops(server: ScriptedServer) -> None:
    client = specclient.AsyncClient(**arguments(server))
    server.respond = lambda r: sse(chunk("Hello"), finish()) if r.json.get("stream") else reply(completion())

    async def ask() -> str:
        answer = await client.chat.completions.create(messages=MESSAGES)
        got = [c async for c in await client.chat.completions.create(messages=MESSAGES, stream=True)]
        assert text_of(got) == "Hello"
        return str(answer.choices[0].message.content)

    for _ in range(3):
        assert asyncio.run(ask()) == "Hello"
    server.wait_for(lambda s: s.open_connections == 0)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_an_event_loop_that_was_closed_with_its_connections_open(server: ScriptedServer) -> None:
    """Closing them is the collector's now, and the client does not keep it from that."""
    client = specclient.AsyncClient(**arguments(server))
    server.respond = lambda _: reply(completion())

    for number in range(3):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.chat.completions.create(messages=MESSAGES))
        loop.close()
        assert server.connections == number + 1
    asyncio.run(client.chat.completions.create(messages=MESSAGES))
    del loop
    gc.collect()
    server.wait_for(lambda s: s.open_connections == 0)


def test_one_async_client_in_two_loops_at_once(server: ScriptedServer) -> None:
    client = specclient.AsyncClient(**arguments(server))
    server.respond = lambda _: reply(completion())
    found: list[str] = []

    async def ask() -> None:
        for _ in range(5):
            answer = await client.chat.completions.create(messages=MESSAGES)
            found.append(str(answer.choices[0].message.content))

    threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["Hello"] * 20


def test_thirty_two_threads_at_first_use(server: ScriptedServer) -> None:
    server.respond = lambda _: reply(completion())
    client = specclient.Client(**arguments(server))
    barrier = threading.Barrier(32)
    found: list[str] = []

    def ask() -> None:
        barrier.wait()
        found.append(str(client.chat.completions.create(messages=MESSAGES).choices[0].message.content))

    threads = [threading.Thread(target=ask) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert found == ["Hello"] * 32
    server.wait_for(lambda s: s.open_connections == 0)


def _ask_in_child(client: Any, answers: Any) -> None:
    answer = client.chat.completions.create(messages=MESSAGES)
    answers.put((os.getpid(), answer.choices[0].message.content))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_after_a_fork_the_child_opens_its_own_connections(server: ScriptedServer) -> None:
    server.respond = lambda _: reply(completion())
    client = specclient.Client(**arguments(server))
    client.chat.completions.create(messages=MESSAGES)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_ask_in_child, args=(client, answers))
    child.start()
    pid, text = answers.get(timeout=30)
    child.join()
    client.chat.completions.create(messages=MESSAGES)
    client.close()
    assert (pid, text) == (child.pid, "Hello")
    assert [r.connection for r in server.requests] == [0, 1, 0]


# Cancellation


class StepByStep:
    """Awaits a coroutine and cancels the task where the coroutine is suspended for the n-th time."""

    def __init__(self, coroutine: Any, cancel_at: int) -> None:
        self.coroutine = coroutine
        self.cancel_at = cancel_at
        self.cancelled = False

    def __await__(self) -> Any:
        suspended = 0
        value: Any = None
        fault: BaseException | None = None
        while True:
            try:
                waited = self.coroutine.send(value) if fault is None else self.coroutine.throw(fault)
            except StopIteration as stop:
                return stop.value
            suspended += 1
            if suspended == self.cancel_at:
                self.cancelled = True
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                value, fault = (yield waited), None
            except BaseException as thrown:
                fault = thrown


def answers_of(server: ScriptedServer) -> Any:
    """A retry, then a slow stream: many places to be cancelled at."""
    state = {"n": 0}

    def respond(request: Any) -> Any:
        state["n"] += 1
        if not request.json.get("stream"):
            return reply(completion())
        if state["n"] % 2:
            return error(500, "no", {"retry-after-ms": "1"})
        return stream(
            Wait(0.005),
            data(role()),
            data(chunk("Hel")),
            Wait(0.005),
            data(chunk("lo")),
            data(finish()),
            data(usage_chunk()),
            DONE,
        )

    return respond


def test_cancelled_at_every_await(server: ScriptedServer) -> None:
    async def whole(client: specclient.AsyncClient) -> str:
        await client.chat.completions.create(messages=MESSAGES)
        got = await client.chat.completions.create(messages=MESSAGES, stream=True)
        async with got:
            return "".join([c.choices[0].delta.content or "" async for c in got if c.choices])

    async def cancelled_at(place: int) -> bool:
        server.respond = answers_of(server)
        before = asyncio.all_tasks()
        async with specclient.AsyncClient(**arguments(server, max_connections=1)) as client:
            stepped = StepByStep(whole(client), place)
            task = asyncio.ensure_future(stepped)
            await asyncio.wait([task])
            assert stepped.cancelled or task.result() == "Hello"
            # the one connection that the pool may have is free again
            server.respond = lambda _: reply(completion())
            async with asyncio.timeout(20):
                answer = await client.chat.completions.create(messages=MESSAGES)
            assert answer.choices[0].message.content == "Hello"
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before
        return stepped.cancelled

    place = 1
    while asyncio.run(cancelled_at(place)):
        place += 1
        assert place < 500
    assert place > 10, "there was something to cancel"
    server.wait_for(lambda s: s.open_connections == 0)


def test_cancelling_a_task_in_the_middle_of_a_stream_ends_its_span_and_frees_its_connection(
    server: ScriptedServer,
) -> None:
    server.respond = lambda _: stream(data(chunk("a")), Stall())

    async def main() -> None:
        async with specclient.AsyncClient(**arguments(server)) as client:
            held: list[Any] = []

            async def read() -> None:
                held.append(await client.chat.completions.create(messages=MESSAGES, stream=True))
                async for _ in held[0]:
                    started.set()

            started = asyncio.Event()
            task = asyncio.create_task(read())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for, lambda s: s.left == 1)
            assert held[0].specclient.attempts[0].error == "CancelledError"

    asyncio.run(main())


def test_no_thread_is_left(door: SyncDoor) -> None:
    before = set(threading.enumerate()) - set(door.server._threads)
    door.server.respond = lambda r: sse(chunk("a"), finish()) if r.json.get("stream") else reply(completion())
    door.create()
    door.text()
    left = set(threading.enumerate()) - set(door.server._threads) - before
    assert not {thread for thread in left if "_accept" not in thread.name and "_serve" not in thread.name}


def test_a_hundred_streams_at_once_lose_nothing(server: ScriptedServer) -> None:
    server.respond = lambda r: sse(*[chunk(f"{r.json['seed']},") for _ in range(20)], finish())

    async def one(client: specclient.AsyncClient, number: int) -> str:
        got = await client.chat.completions.create(messages=MESSAGES, stream=True, seed=number)
        return "".join([c.choices[0].delta.content or "" async for c in got])

    async def main() -> None:
        async with specclient.AsyncClient(**arguments(server)) as client:
            texts = await asyncio.gather(*[one(client, n) for n in range(100)])
        assert texts == [f"{n}," * 20 for n in range(100)]

    asyncio.run(main())
