"""A target that failed repeatedly is passed over for a while."""

from __future__ import annotations

from typing import Any

import pytest

import specclient
from specclient.core.breaker import Breaker
from tests.doors import SyncDoor
from tests.server import ScriptedServer, completion, error, reply


def test_a_circuit_opens_and_a_probe_closes_it(
    door: SyncDoor, second: ScriptedServer, configured: Any, waits: list[float]
) -> None:
    now = [0.0]
    client = configured(prod="", backup="")
    breaker = client.destinations[0].breaker = Breaker(2, 30.0, clock=lambda: now[0])
    second.respond = lambda _: reply(completion())
    door.server.respond = lambda _: error(500, "no")
    for _ in range(2):
        assert door.create(max_retries=0).specclient.target == "backup"
    assert breaker.state == "open"
    report = door.create(max_retries=0).specclient
    assert len(door.server.requests) == 2, "an open circuit is passed over"
    assert [note.code for note in report.notes] == ["circuit_open"]
    now[0] = 31.0
    door.create(max_retries=0)
    assert (len(door.server.requests), breaker.state) == (3, "open")
    door.server.respond = lambda _: reply(completion())
    now[0] = 62.0
    assert door.create(max_retries=0).specclient.target == "prod"
    assert breaker.state == "closed"


def test_a_failed_call_counts_once_for_each_target(
    door: SyncDoor, second: ScriptedServer, configured: Any, waits: list[float]
) -> None:
    client = configured()
    for destination in client.destinations:
        destination.breaker = Breaker(2)
    door.server.respond = second.respond = lambda _: error(500, "no")
    for expected in ("closed", "open"):
        with pytest.raises(specclient.InternalServerError):
            door.create()
        assert [d.breaker.state for d in client.destinations] == [expected] * 2


def test_a_circuit_lets_one_probe_through() -> None:
    now = [0.0]
    breaker = Breaker(1, 10.0, clock=lambda: now[0])
    breaker.failed()
    now[0] = 10.0
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    assert breaker.state == "probing"
    now[0] = 20.0
    assert breaker.allows(), "a probe that never ended does not block for ever"


def test_a_single_target_has_no_circuit(door: SyncDoor, waits: list[float]) -> None:
    door.make(max_retries=0)
    door.server.respond = lambda _: error(500, "no")
    for _ in range(6):
        with pytest.raises(specclient.InternalServerError):
            door.create()
    assert len(door.server.requests) == 6


def test_circuits_that_are_all_open_are_told(door: SyncDoor, second: ScriptedServer, configured: Any) -> None:
    configured()
    door.server.respond = second.respond = lambda _: error(503, "no")
    for _ in range(3):
        with pytest.raises(specclient.InternalServerError):
            door.create(max_retries=0)
    with pytest.raises(
        specclient.InternalServerError, match="prod: passed over, it failed repeatedly; backup: "
    ) as caught:
        door.create(max_retries=0)
    assert [(a.target, a.status) for a in caught.value.report.attempts] == [("backup", 503)], (
        "the last of a chain is asked all the same"
    )
    assert [note.code for note in caught.value.report.notes] == ["circuit_open"]
