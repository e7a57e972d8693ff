"""B: what is asked again, when, and what never is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specclient
from tests.conformance.all_doors import DOORS
from tests.demand.faults import DROPS, STATUSES
from tests.doors import MESSAGES, SyncDoor
from tests.providers.fixtures import Case
from tests.server import ScriptedServer, completion, error, reply


@pytest.mark.parametrize("way", DOORS)
@pytest.mark.parametrize("header", [{"retry-after": "75"}, {"retry-after-ms": "75000"}])
def test_b21_the_same_429_through_every_door(
    way: str, server: ScriptedServer, tmp_path: Path, header: dict[str, str]
) -> None:
    server.respond = lambda _: error(429, "Slow down", {**header, "x-request-id": "r1"})
    case = Case("fireworks", "m", "slow", {"messages": MESSAGES}, b"", "application/json")
    opened = DOORS[way](server, tmp_path)
    try:
        with pytest.raises(Exception, match=r"Slow down|refused") as caught:
            opened.ask(case)
        assert caught.value.status_code == 429
        if "wrapped" in way:
            assert caught.value.response.headers.items() >= header.items()
        elif way == "gateway":
            answer = opened.running.client.post(
                "/chat/completions", json={"model": "it", "messages": MESSAGES}
            )
            assert float(answer.headers["retry-after"]) == 75
        else:
            assert caught.value.retry_after == 75
    finally:
        opened.close()


@pytest.mark.parametrize("cap", [120, 600])
def test_b19_up_to_the_cap_it_is_obeyed(door: SyncDoor, waits: list[float], cap: int) -> None:
    door.server.play(error(429, "later", {"retry-after": str(cap)}), reply(completion()))
    if cap <= 120:
        door.create()
        assert waits == [cap]
        return
    with pytest.raises(specclient.RateLimitError, match="later") as caught:
        door.create()
    assert (caught.value.retry_after, waits) == (cap, [])


@pytest.mark.parametrize(("status", "headers", "again"), STATUSES.values(), ids=STATUSES)
def test_which_statuses_are_asked_again(
    door: SyncDoor, waits: list[float], status: int, headers: dict[str, str], again: bool
) -> None:
    door.server.play(error(status, "no", headers), reply(completion()))
    if again:
        assert door.create().choices[0].message.content == "Hello"
    else:
        with pytest.raises(specclient.APIStatusError):
            door.create()
    assert len(waits) == again


@pytest.mark.parametrize("dropped", DROPS.values(), ids=DROPS)
def test_no_retry_once_content_was_shown(door: SyncDoor, waits: list[float], dropped: Any) -> None:
    door.server.respond = lambda _: dropped()
    with pytest.raises(specclient.APIConnectionError):
        door.read()
    assert (len(door.server.requests), waits) == (1, [])
