"""The reader of answers: what it takes, when, and no belief in nonsense."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_providers import AnswerReader, Reading, provider_names, resolve
from tests.providers.reading import details, phases, read, seconds

NONSENSE = [-1, -0.5, float("nan"), float("inf"), "-3", "nan", "many", True, [], {}, "1e999"]


@pytest.mark.parametrize("value", NONSENSE)
def test_nonsense_is_refused_and_noted(value: Any) -> None:
    reading = read("openai", details(value, 3))
    assert reading.accepted is None
    assert reading.rejected == 3
    assert [code for code, _ in reading.notes] == ["nonsense"]
    slow = read("groq", {"usage": {"queue_time": value, "prompt_time": 0.1}})
    assert slow.queue is None
    assert seconds(slow.prefill) == 0.1
    assert [code for code, _ in slow.notes] == ["nonsense"]


def test_a_fraction_of_a_token_is_refused() -> None:
    assert read("openai", details(2.5, 1)).accepted is None
    assert read("openai", details(2.0, 1)).accepted == 2


def test_counters_that_do_not_fit_into_the_output_are_refused_together() -> None:
    reading = read("openai", details(200, 150, 300))
    assert (reading.accepted, reading.rejected, reading.extra_billed) == (None, None, None)
    assert "300 completion tokens" in reading.notes[0][1]


def test_counters_beside_the_output_need_not_fit_into_it() -> None:
    body = {
        "usage": {"completion_tokens": 10},
        "perf_metrics": {"speculation-prompt-tokens": 500, "speculation-prompt-matched-tokens": 9},
    }
    assert read("fireworks", body).rejected == 491


def test_a_rate_above_one_is_refused() -> None:
    reading = read("sambanova", {"usage": {"acceptance_rate": 4.06}})
    assert reading.acceptance_rate is None
    assert "above 1" in reading.notes[0][1]


def test_a_time_longer_than_the_call_is_refused() -> None:
    body = {"usage": {"queue_time": 0.1, "prompt_time": 7.0, "completion_time": 0.3}}
    reading = read("groq", body, elapsed=1.0)
    assert phases(reading)[:3] == (0.1, None, 0.3)
    assert "7.000 s" in reading.notes[0][1]
    assert seconds(read("groq", body).prefill) == 7.0


def test_parts_that_do_not_add_up_are_left_out() -> None:
    reading = read("dynamo", {"nvext": {"timing": {"ttft_ms": 600, "total_time_ms": 510}}})
    assert reading.decode is None
    assert [code for code, _ in reading.notes] == ["nonsense"]


@pytest.mark.parametrize("text", ["1:12/10", "1:a/b", "junk", "1:-1/2"])
def test_malformed_positions_are_refused(text: str) -> None:
    reading = read("fireworks", {"perf_metrics": {"speculation-acceptance": text}})
    assert reading.drafted is None
    assert [code for code, _ in reading.notes] == ["nonsense"]


def test_a_fresh_reader_has_seen_nothing() -> None:
    reader = AnswerReader(resolve("openai", model="m"))
    for _ in range(2):
        reader.event(details(-1, 3))
        reader = reader.fresh()
        assert reader.result() == Reading()
        reader.headers({"openai-processing-ms": "5"})
        reader.event({"object": "chat.completion"})
        assert reader.result().server_total is not None


def test_a_result_can_be_asked_for_before_the_end() -> None:
    reader = AnswerReader(resolve("openai", model="m"))
    assert reader.result() == Reading()
    reader.event(details(1, 1))
    assert reader.result().accepted == 1
    reader.event(details(2, 1))
    assert reader.result().accepted == 2


@pytest.mark.parametrize(
    "junk", [None, 3, "text", [], {"usage": 7}, {"usage": {"completion_tokens_details": [1]}}]
)
def test_malformed_objects_are_passed_over(junk: Any) -> None:
    for provider in provider_names():
        read(provider, junk, {"choices": junk}, headers={"x": "y"})


KEYS = [
    *("usage", "choices", "metrics", "timings", "perf_metrics", "meta_info", "time_info", "0"),
    *(
        "completion_tokens_details",
        "accepted_prediction_tokens",
        "completion_tokens",
        "queue_time",
        "prompt_ms",
    ),
]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.sampled_from(["openai_compatible", "fireworks", "sglang", "openai"]), st.lists(json_values, max_size=4)
)
def test_no_answer_raises_and_every_figure_is_sane(provider: str, events: list[Any]) -> None:
    reading = read(provider, *events, elapsed=2.0)
    for measure in (reading.queue, reading.prefill, reading.decode, reading.time_to_first_token):
        assert measure is None or (math.isfinite(measure.seconds) and 0 <= measure.seconds <= 2.05)
    for count in (reading.accepted, reading.rejected, reading.drafted, reading.usage.completion):
        assert count is None or count >= 0
