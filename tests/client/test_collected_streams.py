"""A stream that is dropped unread and collected at the worst moment: under the connection pool's lock."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap

import httpcore
import pytest

from specclient.core.pool_calls import POOL_CALLS
from tests import server as scripted
from tests.server import ScriptedServer

DROP = """
import gc, os, sys
import httpcore, httpcore2, specclient

address, door = sys.argv[1:]

def opened():
    if door == "client":
        client = specclient.Client(base_url=address, provider="openai_compatible", model="m", api_key="k")
    else:
        if door == "groq":
            from groq import Groq as sdk
        else:
            from openai import OpenAI as sdk
        client = specclient.wrap(sdk(base_url=address, api_key="k", max_retries=0))
    return client, lambda: client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )

client, call = opened()

under_lock = False

def collecting(kind):
    plain = kind._assign_requests_to_connections
    body = plain.__globals__["PoolByteStream"]
    plainly_closed = body.close

    def assign(pool):
        global under_lock
        under_lock = True
        gc.collect()  # what an allocation may do here at any time
        under_lock = False
        return plain(pool)

    def close(stream):
        if under_lock:  # httpcore would wait for ever, httpcore2 change the pool in the middle of a change
            os.write(2, b"closed under the lock")
            os._exit(1)
        plainly_closed(stream)

    kind._assign_requests_to_connections = assign
    body.close = close

for library in (httpcore, httpcore2):
    collecting(library.ConnectionPool)
gc.freeze()  # the modules: the collections below find the streams all the same
gc.disable()
for _ in range(4):
    stream = call()
    next(iter(stream))
    knot = [stream]
    knot.append(knot)  # only the collector finds it
    del stream, knot
gc.collect()
print("alive")
"""


@pytest.mark.parametrize("door", ["client", "openai", "groq"])
def test_a_dropped_stream_is_closed_without_waiting_for_the_lock_that_this_thread_holds(door: str) -> None:
    with ScriptedServer() as server:
        for _ in range(4):
            server.play(scripted.sse(scripted.chunk("a"), scripted.Stall(), done=False))
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(DROP), f"{server.origin}/v1", door],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert ran.stdout.strip() == "alive", ran.stderr
        server.wait_for(lambda server: server.open_connections == 0)


def test_closings_wait_for_the_end_of_the_call_into_a_pool() -> None:
    done: list[str] = []

    def fails() -> None:
        done.append("fails")
        raise httpcore.ReadError

    with POOL_CALLS:
        with POOL_CALLS:
            POOL_CALLS.dropped(fails)
            POOL_CALLS.dropped(lambda: done.append("closed"))
        assert POOL_CALLS.busy
        assert done == []
    assert done == ["fails", "closed"]
    POOL_CALLS.dropped(lambda: done.append("at once"))
    assert done[-1] == "at once"
    assert not POOL_CALLS.busy
    gc.collect()
