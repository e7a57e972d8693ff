"""What holds through each SDK, sync and async, plain and streamed."""

from __future__ import annotations

import json

import pytest

from specclient.middleware import drain, last_report, predicting, report_of
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.sdks import Sdk, text_of

pytestmark = pytest.mark.sdk

KNOWN = "def bar(): pass"
ACCEPTED = {
    "prompt_tokens": 5,
    "completion_tokens": 9,
    "total_tokens": 14,
    "completion_tokens_details": {"accepted_prediction_tokens": 6, "rejected_prediction_tokens": 2},
}


def test_a_plain_answer_carries_its_report(sdk: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion("Hello", usage=ACCEPTED), headers={"x-request-id": "r-1"}))
    with predicting(KNOWN):
        answer = sdk.create()
    assert text_of(answer) == "Hello"
    report = report_of(answer)
    assert report is not None
    assert report.request_id == "r-1"
    assert report.attempts[0].status == 200
    if sdk.kind.documented:
        assert report.prediction.outcome == "forwarded"
        assert KNOWN in str(server.requests[0].json["prediction"])
    else:
        assert report.prediction.outcome == "withheld"
        assert report.prediction.reasons
        assert "prediction" not in server.requests[0].json
    if sdk.kind.name == "openai":
        assert (report.prediction.accepted_tokens, report.prediction.rejected_tokens) == (6, 2)
        assert report.prediction.effect == "used"
    if sdk.kind.keeps_unknown_fields:
        assert answer.specclient == json.loads(report.model_dump_json(exclude_none=True))


def test_a_streamed_answer_carries_its_report_in_the_last_chunk(sdk: Sdk, server: ScriptedServer) -> None:
    server.play(
        scripted.sse(
            scripted.role(),
            scripted.chunk("Hel"),
            scripted.chunk("lo"),
            scripted.finish(),
            scripted.usage_chunk(),
        )
    )
    with predicting(KNOWN):
        chunks = sdk.stream()
    assert text_of(chunks) == "Hello"
    report = report_of(chunks[-1])
    assert report is not None
    assert report.prediction.outcome == ("forwarded" if sdk.kind.documented else "withheld")
    assert report.timing.time_to_first_token is not None
    assert report.timing.client.receive is not None
    if sdk.kind.keeps_unknown_fields:
        assert not any(hasattr(chunk, "specclient") for chunk in chunks[:-1])
    if not sdk.is_async:
        assert last_report() == report


def test_without_a_prediction_the_request_is_not_touched(sdk: Sdk, server: ScriptedServer) -> None:
    bare = Sdk(sdk.kind, server.origin, is_async=sdk.is_async)
    for client in (bare, sdk):
        server.play(scripted.reply(scripted.completion()))
        client.create(temperature=0.5)
    bare.close()
    if sdk.kind.name != "fireworks":  # documents a report that is switched on, so its body does change
        assert server.requests[0].body == server.requests[1].body
    differing = {
        name
        for name in server.requests[0].headers.keys() | server.requests[1].headers.keys()
        if server.requests[0].headers.get(name) != server.requests[1].headers.get(name)
    }
    assert differing <= {"idempotency-key", "x-stainless-read-timeout", "x-idempotency-key", "content-length"}


def test_streams_reuse_the_connection(
    sdk: Sdk, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "LIMIT", 10.0)  # a busy machine may keep the server from its last bytes
    for _ in range(3):
        server.play(scripted.sse(scripted.chunk("a"), scripted.finish()))
        late_end = scripted.Wait(0.05)
        server.play(scripted.sse(scripted.chunk("b"), scripted.finish(), scripted.DONE, late_end, done=False))
        assert text_of(sdk.stream()) == "a"
        assert text_of(sdk.stream()) == "b"
    assert server.connections == 1


def test_a_stream_left_open_after_done_is_not_waited_for(sdk: Sdk, server: ScriptedServer) -> None:
    for _ in range(2):
        server.play(
            scripted.sse(scripted.chunk("a"), scripted.finish(), scripted.DONE, scripted.Stall(), done=False)
        )
        assert text_of(sdk.stream()) == "a"
    assert server.connections == 2


def test_a_compressed_answer_is_read_and_passed_on(sdk: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion("Hello"), gzip=True))
    answer = sdk.create()
    assert text_of(answer) == "Hello"
    assert report_of(answer) is not None


def test_a_compressed_stream_is_read_and_passed_on(sdk: Sdk, server: ScriptedServer) -> None:
    server.play(scripted.sse(scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish(), gzip=True))
    chunks = sdk.stream()
    assert text_of(chunks) == "Hello"
    assert report_of(chunks[-1]) is not None
