"""Reading a request: sync and async alike, by one or by many, to the end or not."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from engine_kit import Bench, ByteTokenizer, FullLength, RecordingRunner, Scripted

from specclient_engine import Engine, GenerationRequest, Handle, Step
from specclient_engine.cost import CostCurve
from specclient_engine.handle import Mailbox
from specclient_engine.scheduler import SpeculationTools

LAST = Step(text="b", token_ids=(2,), finish_reason="stop")


def ask(bench: Bench, **wanted: Any) -> Handle:
    return bench.engine.submit(GenerationRequest(prompt_ids=[1, 2], ignore_eos=True, **wanted))


def test_sync_and_async_read_the_same(bench: Bench) -> None:
    async def read() -> list[Step]:
        return [step async for step in ask(bench, max_tokens=20)]

    assert asyncio.run(read()) == list(ask(bench, max_tokens=20))


def test_several_readers_share_the_steps_and_all_come_to_an_end() -> None:
    mailbox = Mailbox()
    handle = Handle(mailbox)
    seen: list[Step] = []
    threads = [threading.Thread(target=lambda: seen.extend(handle)) for _ in range(4)]
    for thread in threads:
        thread.start()

    async def read_all() -> None:
        async def read() -> None:
            seen.extend([step async for step in handle])

        readers = [asyncio.create_task(read()) for _ in range(4)]
        await asyncio.sleep(0)
        for number in range(20):
            mailbox.post(Step(text="", token_ids=(number,)))
            await asyncio.sleep(0)
        mailbox.post(Step(text="", token_ids=(20,), finish_reason="stop"))
        await asyncio.gather(*readers)

    asyncio.run(read_all())
    for thread in threads:
        thread.join()
    assert sorted(step.token_ids[0] for step in seen) == list(range(21))


def test_an_error_reaches_every_reader_behind_the_steps() -> None:
    mailbox = Mailbox()
    handle = Handle(mailbox)
    mailbox.post(Step(text="a", token_ids=(1,)))
    mailbox.fail(ValueError("broken"))
    assert next(handle).text == "a"
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            next(handle)


def test_a_closed_loop_with_a_waiting_reader_does_no_harm() -> None:
    mailbox = Mailbox()
    handle = Handle(mailbox)

    async def give_up() -> None:
        waiting = asyncio.create_task(anext(handle))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(give_up())
    loop = asyncio.new_event_loop()
    sleeper = loop.create_future()
    mailbox._sleepers.append((loop, sleeper))
    loop.close()
    mailbox.post(LAST)
    assert list(handle) == [LAST]


def test_a_cancelled_reader_takes_no_step_with_it() -> None:
    mailbox = Mailbox()
    handle = Handle(mailbox)

    async def read() -> Step:
        first = asyncio.create_task(anext(handle))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        mailbox.post(LAST)
        first.cancel()
        await asyncio.wait([first])
        return await anext(handle)

    assert asyncio.run(read()) == LAST


def test_an_abandoned_handle_cancels_its_request(bench: Bench, recording: RecordingRunner) -> None:
    handle = ask(bench)
    next(handle)
    mailbox = handle._mailbox
    del handle
    gc.collect()
    assert mailbox.cancelled
    steps = []
    while (step := mailbox.wait()) is not None:
        steps.append(step)
    assert steps[-1].finish_reason == "cancelled"


def test_leaving_the_block_cancels(bench: Bench) -> None:
    with ask(bench) as handle:
        next(handle)
    assert list(handle)[-1].finish_reason == "cancelled"


def test_stats_are_there_at_the_end_only(bench: Bench, recording: RecordingRunner) -> None:
    handle = ask(bench, max_tokens=3)
    open_stats: list[object] = []
    recording.before_forward = lambda: open_stats.append(handle.stats)
    list(handle)
    assert open_stats == [None] * len(open_stats)
    assert handle.stats is not None
    assert handle.stats.completion_tokens == 3


def test_a_handle_keeps_its_engine_and_an_engine_without_handles_ends_its_thread(
    recording: RecordingRunner,
) -> None:
    tools = SpeculationTools(lambda _: Scripted(lambda *_: ()), FullLength(), CostCurve([1], [0.1]))
    engine = Engine(recording, ByteTokenizer(), tools)
    thread = engine._thread
    handle = engine.submit(GenerationRequest(prompt_ids=[1, 2], ignore_eos=True, max_tokens=20))
    del engine
    gc.collect()
    assert len(list(handle)) == 20
    del handle
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
