"""A report that specclient switched on by itself never costs the caller the call."""

from __future__ import annotations

from tests import server as scripted
from tests.conformance.all_doors import Door
from tests.providers.fixtures import ANSWER, cases
from tests.server import ScriptedServer

CASE = next(case for case in cases("vllm") if case.streamed)


def test_a_server_that_refuses_stream_options_is_asked_again_without(
    door: Door, server: ScriptedServer
) -> None:
    refusal = scripted.error(400, "Unrecognized request argument supplied: stream_options")
    server.play(refusal, scripted.sse(scripted.role(), scripted.chunk(ANSWER), scripted.finish()))
    seen = door.ask(CASE)
    first, second = server.requests
    assert first.json["stream_options"] == {"include_usage": True}
    assert "stream_options" not in second.json
    assert {**second.json, "stream_options": None} == {**first.json, "stream_options": None}
    assert seen.text == ANSWER
    assert any(note.code == "opt_in_refused:include_usage" for note in seen.report.notes)
