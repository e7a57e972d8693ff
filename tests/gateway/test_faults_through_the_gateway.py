"""No fault of a target becomes a whole-looking answer: it is whole and says so, or it is an error."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.conftest import Running
from tests.gateway.test_gateway import objects
from tests.server import DONE, ScriptedServer
from tests.wrap.test_same_as_bare import PLAIN, STREAMS

TEXT = "Hé 🙂 \u2028lo"

BROKEN_STREAMS = {
    "error object",
    "error object first",
    "no end",
    "half an event",
    "nothing",
    "broken",
    "reset",
    "not JSON",
    "a page",
    "a page with 200",
    "an error",
}
BROKEN_ANSWERS = {
    "an error in a 200",
    "empty",
    "half",
    "a list",
    "a page",
    "an error",
    "no answer",
    "redirect",
    "no content",
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams(gateway: Running, upstream: ScriptedServer, name: str) -> None:
    upstream.play(STREAMS[name])
    answer = gateway.post(model="plain", stream=True)
    whole = answer.status_code == 200 and answer.content.endswith(DONE)
    assert whole is (name not in BROKEN_STREAMS)
    events: list[Any] = objects(answer.content) if answer.status_code == 200 else [answer.json()]
    assert ("error" in events[-1]) is not whole
    text = "".join(
        choice["delta"].get("content") or "" for event in events for choice in event.get("choices") or ()
    )
    assert TEXT.startswith(text) or name == "content with the finish reason"
    if whole:
        assert "specclient" in events[-1]


@pytest.mark.parametrize("name", PLAIN)
def test_plain(gateway: Running, upstream: ScriptedServer, name: str) -> None:
    upstream.play(PLAIN[name])
    answer = gateway.post(model="plain")
    assert (answer.status_code == 200) is (name not in BROKEN_ANSWERS)
    assert ("error" in answer.json()) is (name in BROKEN_ANSWERS)
