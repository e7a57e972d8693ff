"""From target to target: hosted, hosted, local."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specclient
from tests.client.fake_engine import FakeEngine
from tests.doors import SyncDoor, text_of
from tests.server import (
    Close,
    ScriptedServer,
    Stall,
    chunk,
    completion,
    data,
    error,
    finish,
    raw,
    reply,
    role,
    sse,
    stream,
)


def test_the_next_target_has_its_own_everything(
    door: SyncDoor, second: ScriptedServer, configured: Any, waits: list[float]
) -> None:
    configured()
    door.server.play(error(500, "no"), error(500, "no"))
    second.play(reply(completion()))
    report = door.create(model="asked-for", max_tokens=5).specclient
    assert [r.json["model"] for r in door.server.requests] == ["asked-for"] * 2
    assert second.requests[0].json["model"] == "backup-model"
    assert second.requests[0].headers["authorization"] == "Bearer sk-backup-key"
    assert [(a.target, a.status) for a in report.attempts] == [("prod", 500), ("prod", 500), ("backup", 200)]
    assert report.target == "backup"


def test_the_limits_name_follows_the_target(door: SyncDoor, second: ScriptedServer, configured: Any) -> None:
    configured(
        prod='overrides = {length_key = "max_completion_tokens"}',
        backup='overrides = {length_key = "max_tokens"}',
    )
    door.server.play(error(404, "no"))
    second.play(reply(completion()))
    door.create(max_tokens=5)
    assert door.server.requests[0].json["max_completion_tokens"] == 5
    assert "max_tokens" not in door.server.requests[0].json
    assert second.requests[0].json["max_tokens"] == 5


def test_bad_keys_everywhere_are_tried_once_each(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured(backup='fallback = ["prod"]')
    door.server.play(error(401, "bad key A"))
    second.play(error(401, "bad key B"))
    with pytest.raises(specclient.AuthenticationError) as caught:
        door.create()
    assert (len(door.server.requests), len(second.requests)) == (1, 1)
    assert "bad key A" in str(caught.value)
    assert "bad key B" in str(caught.value)
    assert caught.value.report is not None
    assert [a.target for a in caught.value.report.attempts] == ["prod", "backup"]


def test_a_400_goes_to_the_next_target_without_a_retry(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured()
    door.server.play(error(400, "max_tokens is too large"))
    second.play(reply(completion()))
    assert door.create().specclient.target == "backup"
    assert len(door.server.requests) == 1


def test_a_target_that_cannot_express_the_request_is_passed_over(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured(
        chain='["other", "backup"]',
        more='[targets.other]\nprovider = "openai_compatible"\nbase_url = "http://127.0.0.1:9"',
    )
    door.server.play(error(404, "no"))
    second.play(reply(completion()))
    report = door.create().specclient
    assert [a.target for a in report.attempts] == ["prod", "backup"]
    assert any("No model for target 'other'" in note.text for note in report.notes)


def test_a_policy_of_error_goes_to_a_target_that_can(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured(prod='on_unsupported = "error"', backup='overrides = {prediction = "documented"}')
    second.play(reply(completion()))
    report = door.create(prediction="known").specclient
    assert door.server.requests == []
    assert (report.target, report.prediction.outcome) == ("backup", "forwarded")


def test_prediction_is_preferred_where_asked(door: SyncDoor, second: ScriptedServer, configured: Any) -> None:
    documented = 'overrides = {prediction = "documented"}'
    configured(prod="prefer_prediction = true", backup=documented)
    second.play(reply(completion()))
    door.server.play(reply(completion()), reply(completion()))
    assert door.create(prediction="known").specclient.target == "backup"
    assert door.create().specclient.target == "prod", "without a prediction the order is the configured one"
    configured(backup=documented)
    assert door.create(prediction="known").specclient.target == "prod", (
        "and so it is where it was not asked for"
    )


def test_the_embedded_engine_is_the_last_resort(
    door: SyncDoor, second: ScriptedServer, configured: Any, waits: list[float]
) -> None:
    engine = FakeEngine("Hel", "lo")
    configured(chain='["backup", "local"]', engine=engine)
    door.server.play(raw(Close()), raw(Close()))
    second.play(error(503, "busy"), error(503, "busy"))
    chunks = door.read(prediction="Hello")
    assert text_of(chunks) == "Hello"
    report = chunks[-1].specclient
    assert [a.target for a in report.attempts] == ["prod", "prod", "backup", "backup", "local"]
    assert report.prediction.outcome == "local"
    assert engine.requests[0].predictions == ("Hello",)


def test_unsupported_predictions_go_local_where_asked(door: SyncDoor, configured: Any) -> None:
    engine = FakeEngine("Hello")
    configured(prod='on_unsupported = "local"', chain="[]", engine=engine)
    door.server.play(reply(completion()))
    report = door.create(prediction="Hello").specclient
    assert (report.target, report.prediction.outcome) == ("local", "local")
    assert door.server.requests == []
    assert any("documents no predictions" in note.text for note in report.notes)
    assert door.create().specclient.target == "prod"


def test_a_stream_falls_back_before_content_only(
    door: SyncDoor, second: ScriptedServer, configured: Any, waits: list[float]
) -> None:
    configured()
    door.server.play(stream(data(role()), Close(), terminate=False), error(500, "no"))
    second.play(sse(chunk("Hello"), finish()))
    chunks = door.read()
    assert text_of(chunks) == "Hello"
    assert [a.target for a in chunks[-1].specclient.attempts] == ["prod", "prod", "backup"]
    door.server.play(stream(data(chunk("Hel")), Close(), terminate=False))
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.read()
    assert caught.value.partial == "Hel"
    assert len(second.requests) == 1


def test_one_budget_of_time_for_all(door: SyncDoor, second: ScriptedServer, configured: Any) -> None:
    configured(prod="timeout = {total = 0.4}")
    door.server.play(raw(Stall()))
    with pytest.raises(specclient.APITimeoutError) as caught:
        door.create()
    assert caught.value.limit == "total"
    assert second.requests == []


def test_the_report_counts_from_the_first_target(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    from tests.server import Wait

    configured()
    door.server.play(raw(Wait(0.2), *error(404, "no").steps))
    second.play(reply(completion()))
    timing = door.create().specclient.timing
    assert timing.total.seconds > 0.2
    assert timing.sent_at > 0.2


def test_the_error_of_many_targets_tells_of_all(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured()
    door.server.play(error(400, "first " + "x" * 450))
    second.play(error(400, "second " + "y" * 450))
    with pytest.raises(specclient.BadRequestError) as caught:
        door.read()
    assert "prod: " in str(caught.value)
    assert "backup: " in str(caught.value)
    assert "second" in str(caught.value)


def test_a_target_that_fails_after_another_keeps_nothing_of_it(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured()
    door.server.play(stream(data(role()), Close(), terminate=False, headers={"x-request-id": "first"}))
    second.play(raw(Close()), raw(Close()))
    with pytest.raises(specclient.APIConnectionError) as caught:
        door.read(max_retries=0)
    assert caught.value.report is not None
    assert caught.value.report.request_id is None


def test_reload_takes_the_new_configuration(door: SyncDoor, second: ScriptedServer, configured: Any) -> None:
    client = configured()
    path = client.target.origins["model"].split(": ")[0]
    text = Path(path).read_text()
    Path(path).write_text(text.replace('default = "prod"', 'default = "backup"'))
    client.reload()
    second.play(reply(completion()))
    assert door.create().specclient.target == "backup"


def ways(error: specclient.APIError) -> list[tuple[str, int | None]]:
    assert error.report is not None
    return [(attempt.target, attempt.status) for attempt in error.report.attempts]


def test_a_target_named_twice_and_a_cycle_are_asked_once_each(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured(prod="", chain='["backup", "prod", "backup"]', backup='fallback = ["prod", "backup"]')
    door.server.play(error(404, "no A"))
    second.play(error(404, "no B"))
    with pytest.raises(
        specclient.NotFoundError, match=r"All 2 targets failed\. prod: .*no A; backup: .*no B"
    ) as caught:
        door.create()
    assert ways(caught.value) == [("prod", 404), ("backup", 404)]


def test_a_fallback_that_cannot_take_the_request_hides_no_failure(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured(more=f'[targets.bare]\nprovider = "vllm"\nbase_url = "{second.url}"', chain='["bare"]')
    door.server.play(error(404, "no A."))
    with pytest.raises(specclient.NotFoundError, match="no A; bare: No model for target 'bare'") as caught:
        door.create()
    assert ways(caught.value) == [("prod", 404)]
    assert not second.requests


def test_a_policys_no_and_a_live_refusal_stay_in_the_report(
    door: SyncDoor, second: ScriptedServer, configured: Any
) -> None:
    configured(prod='on_unsupported = "error"')
    second.play(reply(completion()))
    report = door.create(prediction="known").specclient
    assert [note.code for note in report.notes] == ["target_unfit"]
    assert report.notes[0].text.startswith("Target prod was passed over: ")
    assert not door.server.requests

    configured(prod='overrides = {prediction = {state = "documented"}}')
    door.server.play(error(400, "Unrecognized request argument supplied: prediction"), error(404, "no"))
    second.play(reply(completion()))
    report = door.create(prediction="known").specclient
    assert [(a.target, a.status) for a in report.attempts] == [("prod", 400), ("prod", 404), ("backup", 200)]
    assert [note.code for note in report.notes] == ["refused_live"]


def test_a_stream_falls_back_until_something_was_given(
    door: SyncDoor, second: ScriptedServer, configured: Any, waits: list[float]
) -> None:
    silent = {
        "role": lambda: stream(data(role()), Close()),
        "error": lambda: sse(role(), {"error": {"code": 429}}),
    }
    for broken in silent.values():
        configured()
        door.server.play(broken())
        second.play(sse(chunk("hi"), finish()))
        chunks = door.read(max_retries=0)
        assert text_of(chunks) == "hi"
        assert [a.target for a in chunks[-1].specclient.attempts] == ["prod", "backup"]
    second.requests.clear()
    for given in (chunk("one"), chunk(reasoning_content="hm"), chunk(tool_calls=[{"index": 0, "id": "c"}])):
        configured()  # a new client, whose circuits are closed
        door.server.play(stream(data(given), Close()))
        with pytest.raises(specclient.APIConnectionError) as caught:
            door.read(max_retries=0)
        assert ways(caught.value) == [("prod", 200)]
    assert not second.requests
