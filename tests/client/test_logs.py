"""One line a call, and the variables of the environment that show it."""

from __future__ import annotations

import logging

import pytest

import specclient
from specclient.client import logs
from tests.doors import SyncDoor
from tests.server import completion, error, reply


def test_one_line_a_call(door: SyncDoor, caplog: pytest.LogCaptureFixture, waits: list[float]) -> None:
    caplog.set_level(logging.INFO, "specclient")
    door.server.play(error(500, "no"), reply(completion()), error(400, "no"))
    door.create(prediction="known")
    with pytest.raises(specclient.BadRequestError):
        door.create()
    lines = [record.getMessage() for record in caplog.records if record.name == "specclient"]
    assert lines[0].startswith("openai_compatible: completed, prediction withheld, 2 tries, ")
    assert lines[1].startswith("openai_compatible: BadRequestError, prediction none, 1 tries, ")
    assert len(lines) == 2


@pytest.mark.parametrize("variable", ["SPECCLIENT_LOG", "OPENAI_LOG"])
def test_the_environment_shows_it(variable: str) -> None:
    assert logs.log.handlers == []
    try:
        logs.from_environment({variable: "info"})
        logs.from_environment({variable: "debug"})
        assert len(logs.log.handlers) == 1
        assert logs.log.level == logging.INFO
    finally:
        logs.log.handlers.clear()
        logs.log.setLevel(logging.NOTSET)
    logs.from_environment({variable: "loud"})
    assert logs.log.handlers == []
