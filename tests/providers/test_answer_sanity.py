"""Figures that cannot be true are refused and noted; odd but true ones are read."""

from __future__ import annotations

from typing import Any

import pytest

from specclient_providers import AnswerReader, Reading, resolve

DRAFTS = {"num_draft_tokens": 10, "num_accepted_draft_tokens": 20}
CHUNK: dict[str, Any] = {"object": "chat.completion.chunk", "choices": []}


def read(
    provider: str,
    *events: Any,
    headers: dict[str, str] | None = None,
    elapsed: float | None = None,
    overrides: dict[str, Any] | None = None,
) -> Reading:
    reader = AnswerReader(resolve(provider, model="m", overrides=overrides))
    reader.headers(headers or {})
    for event in events:
        reader.event(event)
    return reader.result(elapsed)


def usage(completion: Any, **more: Any) -> dict[str, Any]:
    return {"usage": {"completion_tokens": completion, **more}}


def pair(accepted: Any, rejected: Any) -> dict[str, Any]:
    return {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}


def codes(reading: Reading) -> list[str]:
    return [code for code, _ in reading.notes]


class TestCounts:
    @pytest.mark.parametrize(
        "details",
        [
            {"completion_tokens_details": pair(" 5 ", "2")},
            {"output_tokens_details": pair(5, 2)},
            pair(5, 2),
            {"completion_tokens_details": pair(5.0, 2.0), **pair(9, 9)},
        ],
    )
    def test_the_pair_is_found_wherever_usage_has_it(self, details: dict[str, Any]) -> None:
        reading = read("openai", usage("20", **details))
        assert (reading.accepted, reading.rejected, reading.usage.completion) == (5, 2, 20)
        assert codes(reading) == []

    @pytest.mark.parametrize("more", [{}, {"prompt_tokens": 5, "total_tokens": 105}])
    def test_counters_that_the_output_cannot_hold_are_refused(self, more: dict[str, Any]) -> None:
        reading = read("openai", usage(100, completion_tokens_details=pair(49, 107), **more))
        assert (reading.accepted, reading.rejected, reading.extra_billed) == (None, None, None)
        assert codes(reading) == ["nonsense"]

    def test_counters_beside_the_output_are_believed_where_the_total_shows_them(self) -> None:
        body = usage(119, completion_tokens_details=pair(49, 107), prompt_tokens=5, total_tokens=231)
        reading = read("openai", body)
        assert (reading.accepted, reading.rejected) == (49, 107)
        assert codes(reading) == []

    def test_reasoning_beside_the_output_too(self) -> None:
        details = {"completion_tokens_details": {"reasoning_tokens": 50}}
        assert read("xai", usage(20, prompt_tokens=5, total_tokens=75, **details)).usage.reasoning == 50
        assert read("xai", usage(20, prompt_tokens=5, total_tokens=25, **details)).usage.reasoning is None

    @pytest.mark.parametrize(
        ("provider", "body"),
        [
            (
                "vllm",
                {
                    "metrics": {
                        "speculative_decoding": {"num_draft_tokens": 10, "num_accepted_draft_tokens": 20}
                    }
                },
            ),
            ("llama_cpp", {"timings": {"draft_n": 5, "draft_n_accepted": 9}}),
            ("lm_studio", {"stats": {"total_draft_tokens_count": 5, "accepted_draft_tokens_count": 9}}),
        ],
    )
    def test_more_accepted_than_drafted_is_not_believed(self, provider: str, body: dict[str, Any]) -> None:
        reading = read(provider, body)
        assert (reading.drafted, reading.accepted_draft, reading.acceptance_rate) == (None, None, None)
        assert codes(reading) == ["nonsense"]

    def test_more_matched_than_predicted_is_not_believed(self) -> None:
        names = {"speculation-prompt-tokens": "10", "speculation-prompt-matched-tokens": "20"}
        reading = read("fireworks", {"perf_metrics": names})
        assert (reading.accepted, reading.rejected) == (None, None)
        assert codes(reading) == ["nonsense"]

    def test_more_cached_than_prompted_is_not_believed(self) -> None:
        reading = read("openai", usage(9, prompt_tokens=5, prompt_tokens_details={"cached_tokens": 6}))
        assert (reading.usage.prompt, reading.usage.cached) == (5, None)

    @pytest.mark.parametrize("count", [1e30, 10**400, "1e15"])
    def test_no_answer_has_that_many_tokens(self, count: Any) -> None:
        reading = read("openai", usage(count))
        assert reading.usage.completion is None
        assert codes(reading) == ["nonsense"]

    def test_a_total_below_its_parts_is_not_believed(self) -> None:
        found = read("openai", usage(20, prompt_tokens=5, total_tokens=10)).usage
        assert (found.prompt, found.completion, found.total) == (5, 20, None)

    def test_the_choices_of_sglang_are_counted_together(self) -> None:
        details = [
            {"spec_num_proposed_drafts": 10, "spec_num_correct_drafts": 9, "spec_accept_rate": 0.9},
            {"spec_num_proposed_drafts": 30, "spec_num_correct_drafts": 1, "spec_accept_rate": 0.03},
        ]
        reading = read("sglang", {"choices": [], "sglext": {"spec_tokens_details": details}})
        assert (reading.drafted, reading.accepted_draft, reading.acceptance_rate) == (40, 10, 0.25)
        alone = read("sglang", {"choices": [], "sglext": {"spec_tokens_details": details[:1]}})
        assert (alone.drafted, alone.acceptance_rate) == (10, 0.9)


class TestTimes:
    def test_a_point_in_time_is_no_duration(self) -> None:
        stamps = {
            "forward_entry_time": 0.0,
            "prefill_finished_time": 1.7644e9,
            "request_finished_ts": 1.7644e9 + 1,
        }
        reading = read("sglang", {"choices": [{"meta_info": stamps}]})
        assert reading.prefill is None
        assert reading.decode is not None
        assert codes(reading) == ["nonsense"]

    def test_stamps_make_a_total_where_none_is_reported(self) -> None:
        reading = read("sambanova", {"usage": {"start_time": 1.7644e9, "end_time": 1.7644e9 + 2}})
        assert reading.server_total is not None
        assert (reading.server_total.seconds, reading.server_total.source) == (2.0, "derived")

    def test_a_total_below_its_phases_is_not_believed(self) -> None:
        times = {"queue_time": 0.1, "prompt_time": 0.2, "completion_time": 0.3, "total_time": 0.1}
        reading = read("cerebras", {"time_info": times})
        assert reading.server_total is None
        assert reading.decode is not None
        assert codes(reading) == ["nonsense"]

    def test_rounded_parts_may_exceed_their_total_a_little(self) -> None:
        times = {"queue_time": 0.004, "prompt_time": 0.004, "completion_time": 0.041, "total_time": 0.048}
        reading = read("cerebras", {"time_info": times})
        assert reading.server_total is not None
        assert codes(reading) == []

    def test_a_first_token_after_the_end_is_not_believed(self) -> None:
        times = {"server-time-to-first-token": "2.0", "server-processing-time": "1.0"}
        reading = read("fireworks", {"perf_metrics": times})
        assert (reading.time_to_first_token, reading.server_total) == (None, None)
        assert codes(reading) == ["nonsense"]

    def test_tgi_has_a_total_from_its_parts(self) -> None:
        reading = read("tgi", headers={"x-queue-time": "12", "x-inference-time": "500"})
        assert reading.server_total is not None
        assert reading.server_total.seconds == pytest.approx(0.512)
        assert (reading.prefill, reading.decode) == (None, None)

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("gfet4t7; dur=914", 0.914),
            ("gfet4t7;dur=914.5", 0.9145),
            ("cdn; dur=3, gfet4t7; dur=914", 0.914),
            ("cdn; dur=3", None),
            ("gfet4t7; desc=none", None),
        ],
    )
    def test_of_a_server_timing_header_only_googles_own_entry_counts(
        self, header: str, seconds: float | None
    ) -> None:
        total = read("gemini", {"object": "chat.completion"}, headers={"server-timing": header}).server_total
        assert (None if total is None else total.seconds) == seconds

    @pytest.mark.parametrize(("unit", "raw"), [("s", 0.25), ("ms", "250"), ("us", 250_000), ("ns", 250e6)])
    def test_a_servers_own_unit(self, unit: str, raw: Any) -> None:
        figures = {"queue": {"paths": ["t.wait"], "unit": unit}}
        queue = read("openai_compatible", {"t": {"wait": raw}}, overrides={"figures": figures}).queue
        assert queue is not None
        assert queue.seconds == pytest.approx(0.25)

    @pytest.mark.parametrize(("unit", "scale"), [("s", 1.0), ("ms", 1e3), ("us", 1e6)])
    def test_a_servers_own_stamps(self, unit: str, scale: float) -> None:
        figures = {"decode": {"paths": ["t.end"], "since": ["t.begin"], "unit": unit}}
        stamps = {"t": {"begin": 1.7644e9 * scale, "end": (1.7644e9 + 1.5) * scale}}
        decode = read("openai_compatible", stamps, overrides={"figures": figures}).decode
        assert decode is not None
        assert (decode.seconds, decode.source) == (pytest.approx(1.5), "derived")

    def test_a_servers_own_first_token_time_from_scheduling(self) -> None:
        overrides = {
            "figures": {
                "ttft": {"paths": ["t.first"], "unit": "s"},
                "queue": {"paths": ["t.wait"], "unit": "s"},
            },
            "ttft_includes_queue": False,
        }
        reading = read("openai_compatible", {"t": {"first": 0.5}}, overrides=overrides)
        assert (reading.prefill and reading.prefill.seconds, reading.time_to_first_token) == (0.5, None)
        queued = read("openai_compatible", {"t": {"first": 0.5, "wait": 0.25}}, overrides=overrides)
        assert queued.time_to_first_token is not None
        assert (queued.time_to_first_token.seconds, queued.ttft_includes_queue) == (0.75, True)

    def test_later_nulls_and_later_nonsense_erase_nothing(self) -> None:
        metrics = {"time_to_first_token_ms": 40.0, "queue_time_ms": 5}
        later = [{"time_to_first_token_ms": None}, {"queue_time_ms": -1}, None]
        reading = read("vllm", *({**CHUNK, "metrics": seen} for seen in (metrics, *later)))
        assert reading.queue is not None
        assert reading.prefill is not None
        assert (reading.queue.seconds, reading.prefill.seconds) == (0.005, 0.04)


def test_a_note_names_what_the_answer_has_and_no_private_name() -> None:
    reading = read("fireworks", {"perf_metrics": {"prefill-duration": "-1", "server-processing-time": "-2"}})
    texts = sorted(text for _, text in reading.notes)
    assert texts == [
        "perf_metrics.prefill-duration is negative; it was not believed.",
        "perf_metrics.server-processing-time is negative; the endpoint's total was not believed.",
    ]
