"""Connections shared out over pools."""

from __future__ import annotations

from typing import Any

import pytest

from specclient.core import pools as room
from specclient.core.pools import SHARD, Pools
from specclient.core.send import Connect

URL = "http://127.0.0.1:9/v1"


class Made:
    def __init__(self, **options: Any) -> None:
        self.options = options


def make(limit: int = 1000) -> Pools:
    return Pools(Connect(max_connections=limit), Made)


def test_few_requests_share_one_pool() -> None:
    pools = make()
    first, _ = pools.acquire(URL)
    second, _ = pools.acquire(URL + "/other")
    assert first is second
    pools.release(first)
    assert pools.acquire(URL)[0] is first
    assert pools.acquire("http://127.0.0.1:10/v1")[0] is not first, "another origin"


def test_many_get_small_pools_up_to_the_limit() -> None:
    pools = make(SHARD + 3)
    shards = [pools.acquire(URL)[0] for _ in range(SHARD + 3)]
    assert {shard.size for shard in shards} == {SHARD, 3}
    assert shards[-1].pool.options["max_connections"] == 3
    assert [pools.acquire(URL)[0].in_use for _ in range(2)] == [SHARD + 1, 4], (
        "the shortest queue, by its size"
    )


def test_a_pool_that_stood_empty_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    pools = make()
    shards = [pools.acquire(URL)[0] for _ in range(SHARD + 1)]
    for shard in shards:
        pools.release(shard)
    now[0] += 4
    assert pools.acquire(URL)[1] == []
    now[0] += 2
    assert pools.acquire(URL)[1] == [shards[-1].pool]
    assert pools.take() == [shards[0].pool]


def test_one_certificate_store_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(Connect, "ssl_context", lambda _: made.append(1) or object())
    pools = make()
    for _ in range(3 * SHARD):
        pools.acquire("https://127.0.0.1:9/v1")
    assert made == [1]
