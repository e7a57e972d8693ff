"""The maths of phases, on clocks that only the test moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing_helpers import Clock

from specclient.core.stamps import EnginePhases
from specclient.core.timeline import MAX_GAPS
from specclient.report import Phase


def reading(**seconds: float) -> Any:
    names = ("queue", "prefill", "decode", "time_to_first_token", "server_total")
    return SimpleNamespace(
        **{name: Phase(seconds=seconds[name], source="server") if name in seconds else None for name in names}
    )


def streamed(
    clock: Clock, *, send: float = 5, first: float = 400, decode: float = 600, after: float = 0
) -> Any:
    """A call whose request is sent after `send` ms, whose first content comes `first` ms later."""
    timeline = clock.timeline()
    timeline.attempt_started()
    clock.advance(send)
    timeline.sent()
    clock.advance(first / 2)
    timeline.headers()
    clock.advance(first / 2)
    timeline.frame()
    timeline.content()
    clock.advance(decode)
    timeline.frame()
    timeline.content()
    clock.advance(after)
    timeline.done()
    return timeline


def test_phases_hang_on_the_first_content(clock: Clock) -> None:
    timing = streamed(clock).timing(reading(queue=0.1, prefill=0.2, decode=0.6), streamed=True)
    assert timing.anchor == "first_content"
    assert timing.sent_at == pytest.approx(0.005)
    assert timing.phases_at == pytest.approx(0.105)
    assert timing.unattributed == pytest.approx(0.1)
    assert timing.consistent is True
    assert timing.queue == Phase(seconds=0.1, source="server")


@given(
    queue=st.floats(0.001, 1),
    prefill=st.floats(0.001, 1),
    decode=st.floats(0.001, 5),
    rest=st.floats(0, 1),
)
def test_parts_sum_to_the_window(queue: float, prefill: float, decode: float, rest: float) -> None:
    clock = Clock()
    timeline = streamed(clock, first=(queue + prefill + rest) * 1e3, decode=decode * 1e3)
    timing = timeline.timing(reading(queue=queue, prefill=prefill, decode=decode), streamed=True)
    window = timing.total.seconds - timing.sent_at
    assert timing.consistent is True
    assert timing.unattributed + queue + prefill + decode == pytest.approx(window, abs=1e-6)
    assert timing.phases_at + queue + prefill + decode == pytest.approx(timing.total.seconds, abs=1e-6)


def test_a_plain_answer_hangs_on_its_end(clock: Clock) -> None:
    timeline = clock.timeline()
    timeline.attempt_started()
    timeline.sent()
    clock.advance(1000)
    timeline.headers()
    timeline.frame()
    clock.advance(50)
    timeline.done()
    timing = timeline.timing(reading(queue=0.1, prefill=0.2, decode=0.6), streamed=False)
    assert timing.anchor == "response_end"
    assert timing.phases_at == pytest.approx(0.1)
    assert timing.unattributed == pytest.approx(0.1)
    assert timing.client.first_content is None
    assert timing.time_to_first_token is None


def test_phases_that_do_not_fit_are_kept_but_not_placed(clock: Clock) -> None:
    timing = streamed(clock, first=200).timing(reading(queue=0.1, prefill=0.2, decode=0.5), streamed=True)
    assert timing.consistent is False
    assert timing.phases_at is None
    assert timing.anchor is None
    assert timing.prefill == Phase(seconds=0.2, source="server")
    assert timing.unattributed == pytest.approx(-0.1)


def test_tokens_that_were_held_back_hang_on_the_end(clock: Clock) -> None:
    """The server says that it decoded before its first content came, as llama.cpp does now and then."""
    timeline = streamed(clock, send=1, first=110, decode=20)
    timing = timeline.timing(reading(prefill=0.0994, decode=0.0271), streamed=True)
    assert timing.consistent is True
    assert timing.anchor == "response_end"
    assert timing.phases_at == pytest.approx(0.131 - 0.1265)
    assert timing.unattributed == pytest.approx(0.130 - 0.1265)
    assert timing.time_to_first_token == Phase(seconds=0.111, source="client")


def test_a_decode_longer_than_the_call_does_not_fit(clock: Clock) -> None:
    timing = streamed(clock, decode=100).timing(reading(prefill=0.2, decode=0.5), streamed=True)
    assert timing.consistent is False
    assert timing.phases_at is None


def test_a_millisecond_of_rounding_fits(clock: Clock) -> None:
    timing = streamed(clock, first=300).timing(reading(queue=0.1, prefill=0.2005), streamed=True)
    assert timing.consistent is True
    assert timing.unattributed == 0.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_phase_that_is_no_duration_is_not_reported(clock: Clock, seconds: float) -> None:
    timing = streamed(clock).timing(reading(queue=seconds, prefill=0.2), streamed=True)
    assert timing.queue is None
    assert timing.prefill is not None


def test_without_a_reading_there_is_only_the_stopwatch(clock: Clock) -> None:
    timing = streamed(clock, send=5, first=400, decode=600, after=20).timing(None, streamed=True)
    assert (timing.queue, timing.prefill, timing.decode) == (None, None, None)
    assert (timing.unattributed, timing.consistent, timing.anchor) == (None, None, None)
    assert timing.client.await_headers == pytest.approx(0.2)
    assert timing.client.await_content == pytest.approx(0.2)
    assert timing.client.receive == pytest.approx(0.6)
    assert timing.client.after == pytest.approx(0.02)
    assert timing.time_to_first_token == Phase(seconds=0.405, source="client")


def test_a_reported_time_to_first_token_alone_leaves_the_rest_unattributed(clock: Clock) -> None:
    timing = streamed(clock).timing(reading(time_to_first_token=0.35, decode=0.6), streamed=True)
    assert timing.unattributed == pytest.approx(0.05)
    assert timing.phases_at == pytest.approx(0.405)
    assert timing.time_to_first_token == Phase(seconds=0.35, source="server")


def test_an_empty_role_frame_is_not_content(clock: Clock) -> None:
    timeline = clock.timeline()
    clock.advance(100)
    timeline.frame()
    clock.advance(900)
    timeline.frame()
    timeline.content()
    timeline.done()
    client = timeline.timing(streamed=True).client
    assert client.first_frame == pytest.approx(0.1)
    assert client.first_content == pytest.approx(1.0)


def test_reasoning_is_content_but_not_the_answer(clock: Clock) -> None:
    timeline = clock.timeline()
    for answer in (False, False, True):
        clock.advance(100)
        timeline.frame()
        timeline.content(answer=answer)
    timeline.done()
    client = timeline.timing(streamed=True).client
    assert client.first_content == pytest.approx(0.1)
    assert client.first_answer == pytest.approx(0.3)
    assert timeline.attempt.saw_reasoning


def test_a_first_token_at_zero_keeps_its_place(clock: Clock) -> None:
    timeline = clock.timeline()
    timeline.frame()
    timeline.content()
    clock.advance(10)
    timeline.frame()
    timeline.content()
    timeline.done()
    assert timeline.timing(streamed=True).client.first_content == 0.0


def test_a_usage_frame_after_the_only_content_moves_nothing(clock: Clock) -> None:
    timeline = clock.timeline()
    clock.advance(100)
    timeline.frame()
    timeline.content()
    clock.advance(100)
    timeline.frame()
    timeline.done()
    client = timeline.timing(streamed=True).client
    assert client.first_content == pytest.approx(0.1)
    assert client.receive == 0.0
    assert timeline.attempt.content_frames == 1


def test_a_second_try_starts_its_own_stamps_and_keeps_the_wait_apart(clock: Clock) -> None:
    timeline = clock.timeline()
    timeline.attempt_started()
    clock.advance(100)
    timeline.attempt_ended()
    timeline.waited(0.5)
    clock.advance(500)
    timeline.attempt_started()
    clock.advance(40)
    timeline.frame()
    timeline.content()
    timeline.done()
    timing = timeline.timing(streamed=True)
    assert timing.client.first_content == pytest.approx(0.04)
    assert timing.sent_at == pytest.approx(0.6)
    assert [attempt.waited for attempt in timeline.attempts] == [0.0, 0.5]
    first, second = timeline.attempts
    assert first.ended - first.started == 100_000_000
    assert second.ended == timeline.ended


def test_the_wall_clock_may_step_back_an_hour(clock: Clock) -> None:
    timeline = clock.timeline()
    began = clock.wall_now
    clock.wall_now -= 3_600_000_000_000
    clock.advance(250)
    timeline.done()
    assert timeline.at(timeline.ended) == began + 250_000_000
    assert timeline.timing(streamed=False).total == Phase(seconds=0.25, source="client")


def test_gaps_are_capped_but_the_largest_is_kept(clock: Clock) -> None:
    timeline = clock.timeline()
    for milliseconds in [1] * (MAX_GAPS + 10) + [77]:
        clock.advance(milliseconds)
        timeline.frame()
        timeline.content()
    assert len(timeline.attempt.gaps) == MAX_GAPS
    assert timeline.attempt.max_gap == 77_000_000


def test_the_engine_is_on_our_own_clock(clock: Clock) -> None:
    timeline = clock.timeline()
    timeline.attempt_started()
    clock.advance(10)
    timeline.sent()
    submitted = clock.now + 2_000_000
    phases = EnginePhases(submitted, submitted + 30_000_000, submitted + 130_000_000, submitted + 530_000_000)
    clock.advance(140)
    timeline.frame()
    timeline.content()
    clock.advance(400)
    timeline.done()
    timing = timeline.timing(phases, streamed=True)
    assert timing.anchor == "engine_clock"
    assert timing.phases_at == pytest.approx(0.012)
    assert timing.unattributed == pytest.approx(0.002)
    assert timing.queue == Phase(seconds=0.03, source="engine")
    total = timing.queue.seconds + timing.prefill.seconds + timing.decode.seconds
    assert total == pytest.approx(timing.server_total.seconds)
    assert timing.time_to_first_token == Phase(seconds=0.13, source="engine")


def test_done_counts_once(clock: Clock) -> None:
    timeline = clock.timeline()
    clock.advance(10)
    timeline.done()
    clock.advance(10)
    timeline.done()
    assert timeline.timing(streamed=False).total.seconds == pytest.approx(0.01)


def test_the_engine_may_stamp_before_the_hand_over_returns(clock: Clock) -> None:
    timeline = clock.timeline()
    submitted = clock.now
    clock.advance(7)
    timeline.sent()
    clock.advance(100)
    timeline.frame()
    timeline.content()
    timeline.done()
    phases = EnginePhases(submitted, submitted + 1_000_000, submitted + 90_000_000, submitted + 90_000_001)
    timing = timeline.timing(phases, streamed=True)
    assert (timing.consistent, timing.unattributed, timing.sent_at) == (True, 0.0, 0.0)


def test_the_dust_of_floating_point_is_nobodys_time(clock: Clock) -> None:
    """0.1 + 0.2 is not 0.3, and no clock has steps of 1e-17 s."""
    timeline = clock.timeline()
    clock.advance(300)
    timeline.frame()
    timeline.content()
    timing = timeline.timing(reading(queue=0.1, prefill=0.2), streamed=True)
    assert timing.unattributed == 0.0


def test_nobodys_time_is_never_minus_nothing() -> None:
    """The sum of phases may exceed the window by a dust that rounds to -0.0, which reads like a fault."""
    for step in range(200):
        clock = Clock(now=step * 7_777_777)
        timeline = clock.timeline()
        clock.advance(step)
        timeline.sent()
        clock.advance(300)
        timeline.frame()
        timeline.content()
        timing = timeline.timing(reading(queue=0.1, prefill=0.2), streamed=True)
        assert str(timing.unattributed) == "0.0"
