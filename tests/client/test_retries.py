"""What is asked again, when, and what is not."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

import specclient
from specclient.core.retry import Retries, retry_after, retryable
from specclient.errors import APIError, APIStatusError, status_error
from tests.doors import SyncDoor
from tests.server import Close, completion, error, raw, reply


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_statuses_that_are_asked_again(door: SyncDoor, waits: list[float], status: int) -> None:
    door.server.play(error(status, "no"), reply(completion()))
    report = door.create().specclient
    assert [a.status for a in report.attempts] == [status, 200]
    assert report.attempts[1].waited == waits[0]
    assert 0.375 <= waits[0] <= 0.5


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, specclient.BadRequestError),
        (401, specclient.AuthenticationError),
        (403, specclient.PermissionDeniedError),
        (404, specclient.NotFoundError),
        (422, specclient.UnprocessableEntityError),
        (418, specclient.APIStatusError),
    ],
)
def test_statuses_that_are_not(door: SyncDoor, status: int, kind: type[specclient.APIStatusError]) -> None:
    headers = {"x-request-id": "r1"}
    door.server.play(error(status, "no", headers, code="c", param="p"))
    with pytest.raises(kind, match=f"answered {status}: no") as caught:
        door.create()
    found = caught.value
    assert (found.status_code, found.request_id, found.code, found.param) == (status, "r1", "c", "p")
    assert found.body == {"message": "no", "type": "error", "param": "p", "code": "c"}
    assert found.response.headers["x-request-id"] == "r1"
    assert found.report is not None
    assert found.report.attempts[0].status == status
    assert len(door.server.requests) == 1


@pytest.mark.parametrize(("status", "said", "tries"), [(503, "false", 1), (409, "true", 2), (400, "true", 2)])
def test_the_server_may_say_so_itself(
    door: SyncDoor, waits: list[float], status: int, said: str, tries: int
) -> None:
    door.server.play(error(status, "no", {"x-should-retry": said}), error(404, "end"))
    with pytest.raises(specclient.APIStatusError):
        door.create()
    assert len(door.server.requests) == tries


def test_the_number_of_retries(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(*[error(500, "no")] * 9)
    for retries, tries in ((None, 3), (0, 1), (4, 5)):
        before = len(door.server.requests)
        with pytest.raises(specclient.InternalServerError) as caught:
            door.create(max_retries=retries)
        assert len(door.server.requests) - before == tries
        assert caught.value.report is not None
        assert len(caught.value.report.attempts) == tries


def test_waits_grow_to_a_cap(waits: list[float]) -> None:
    retries = Retries(8)
    fault = status_error(500)("no", status_code=500)
    found = [retries.after(fault, None) for _ in range(9)]
    assert found[-1] is None
    for wait, full in zip(found, [0.5, 1, 2, 4, 8, 8, 8, 8], strict=False):
        assert wait is not None
        assert full * 0.75 <= wait <= full


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "75"}, 75.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, None),
        ({"retry-after": "Mon, 01 Jan 2026 99999999999:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected


def test_retry_after_as_a_date() -> None:
    found = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert found is not None
    assert 55 < found <= 60


def test_retry_after_is_obeyed(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(error(429, "no", {"retry-after": "75"}), reply(completion()))
    door.create()
    assert waits == [75.0]


def test_a_wait_above_the_cap_fails_now_and_tells(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(error(429, "no", {"retry-after": "600"}))
    with pytest.raises(specclient.RateLimitError) as caught:
        door.create()
    assert caught.value.retry_after == 600
    assert waits == []


def test_a_wait_that_does_not_fit_into_the_total_fails_now(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(error(429, "no", {"retry-after": "75"}))
    with pytest.raises(specclient.RateLimitError):
        door.create(timeout=specclient.Timeout(total=60))
    assert waits == []


def test_a_lost_connection_is_asked_again(door: SyncDoor, waits: list[float]) -> None:
    door.server.play(raw(Close()), raw(Close(reset=True)), reply(completion()))
    report = door.create().specclient
    assert [a.error for a in report.attempts] == ["APIConnectionError", "APIConnectionError", None]


def test_nobody_listening(door: SyncDoor, waits: list[float]) -> None:
    door.make(base_url="http://127.0.0.1:9")
    with pytest.raises(specclient.APIConnectionError, match=r"127\.0\.0\.1:9 failed") as caught:
        door.create()
    assert len(waits) == 2
    assert caught.value.request.headers["authorization"] == "**********"


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize(
    "fault", [ValueError("bug"), TimeoutError("alarm"), Interrupt(), KeyboardInterrupt()]
)
def test_what_is_no_network_error_passes_at_once(door: SyncDoor, fault: BaseException) -> None:
    class Broken:
        calls = 0

        def open(self, *_: Any) -> Any:
            self.calls += 1
            raise fault

        def close(self) -> Any:
            return done() if door.kind == "async" else None

    async def done() -> None:
        return None

    client = door.make()
    broken = client.destinations[0].transport = Broken()
    with pytest.raises(type(fault)) as caught:
        door.create()
    assert caught.value is fault
    assert broken.calls == 1


def test_errors_that_are_ours_are_not_retryable() -> None:
    assert not retryable(ValueError())
    assert not retryable(APIError("in stream"))
    assert not retryable(specclient.APITimeoutError("late", limit="total"))
    assert retryable(specclient.APITimeoutError("late", limit="first_byte"))
    assert isinstance(status_error(599)("x", status_code=599), APIStatusError)


def test_a_date_that_cannot_be_is_no_reason_to_give_up(door: SyncDoor, waits: list[float]) -> None:
    impossible = {"retry-after": "99999999999999999999 Jan 2026 00:00:00 GMT"}
    door.server.play(error(503, "no", impossible), reply(completion()))
    assert door.create().choices[0].message.content == "Hello"
    assert len(waits) == 1
