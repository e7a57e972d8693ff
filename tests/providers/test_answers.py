"""One vocabulary over every endpoint's counters and timings, and no belief in nonsense."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specclient_providers import AnswerReader, Measure, Reading, provider_names, resolve


def read(
    provider: str, *events: Any, headers: dict[str, str] | None = None, elapsed: float | None = None
) -> Reading:
    reader = AnswerReader(resolve(provider, model="m"))
    reader.headers(headers or {})
    for event in events:
        reader.event(event)
    return reader.result(elapsed)


def seconds(measure: Measure | None) -> float | None:
    return None if measure is None else round(measure.seconds, 9)


def phases(reading: Reading) -> tuple[float | None, ...]:
    return tuple(
        seconds(measure)
        for measure in (
            reading.queue,
            reading.prefill,
            reading.decode,
            reading.time_to_first_token,
            reading.server_total,
        )
    )


def details(accepted: Any, rejected: Any, completion: int = 300) -> dict[str, Any]:
    pair = {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}
    return {"usage": {"completion_tokens": completion, "completion_tokens_details": pair}}


CHUNK = {"object": "chat.completion.chunk", "choices": []}

TIMES: list[tuple[str, dict[str, Any], dict[str, str], tuple[float | None, ...]]] = [
    (
        "groq",
        {"usage": {"queue_time": 0.1, "prompt_time": 0.2, "completion_time": 0.3, "total_time": 0.5}},
        {},
        (0.1, 0.2, 0.3, None, 0.6),
    ),
    (
        "groq",
        {
            **CHUNK,
            "x_groq": {"id": "r", "usage": {"queue_time": "0.1", "prompt_time": 0.2, "completion_time": 1}},
        },
        {},
        (0.1, 0.2, 1.0, None, None),
    ),
    (
        "cerebras",
        {
            "time_info": {
                "queue_time": 0.0046,
                "prompt_time": 0.0038,
                "completion_time": 0.0404,
                "total_time": 0.0501,
                "created": 1.0,
            }
        },
        {},
        (0.0046, 0.0038, 0.0404, None, 0.0501),
    ),
    (
        "fireworks",
        {"perf_metrics": {"server-time-to-first-token": "0.2", "server-processing-time": "1.5"}},
        {},
        (None, None, None, 0.2, 1.5),
    ),
    (
        "fireworks",
        {
            **CHUNK,
            "perf_metrics": {
                "tokenizer-queue-duration": "0.01",
                "tokenizer-duration": "0.02",
                "prefill-queue-duration": "0.1",
                "prefill-duration": "0.3",
                "generation-queue-duration": "0.05",
                "generation-duration": "0.9",
            },
        },
        {},
        (0.16, 0.32, 0.9, None, None),
    ),
    (
        "fireworks",
        {},
        {"fireworks-server-time-to-first-token": "0.2", "Fireworks-Prefill-Queue-Duration": "0.1"},
        (0.1, None, None, 0.2, None),
    ),
    (
        "sambanova",
        {"usage": {"time_to_first_token": 0.2, "total_latency": 1.0}},
        {},
        (None, None, 0.8, 0.2, 1.0),
    ),
    (
        "vllm",
        {"metrics": {"queue_time_ms": 5.0, "time_to_first_token_ms": 40.0, "generation_time_ms": 600.0}},
        {},
        (0.005, 0.04, 0.6, 0.045, 0.645),
    ),
    (
        "sglang",
        {
            "choices": [
                {
                    "meta_info": {
                        "queue_time": 0.01,
                        "forward_entry_time": 1000.0,
                        "prefill_finished_time": 1000.2,
                        "request_finished_ts": 1001.0,
                        "first_token_latency": 0.25,
                        "e2e_latency": 1.1,
                    }
                }
            ]
        },
        {},
        (0.01, 0.2, 0.8, 0.25, 1.1),
    ),
    (
        "dynamo",
        {
            "nvext": {
                "timing": {
                    "prefill_wait_time_ms": 10,
                    "prefill_time_ms": 90,
                    "ttft_ms": 110,
                    "total_time_ms": 510,
                }
            }
        },
        {},
        (0.01, 0.09, 0.4, 0.11, 0.51),
    ),
    (
        "tgi",
        {},
        {"x-queue-time": "12", "x-validation-time": "3", "x-inference-time": "500", "x-total-time": "520"},
        (0.015, None, None, None, 0.52),
    ),
    (
        "llama_cpp",
        {"timings": {"prompt_ms": 120.5, "predicted_ms": 900.25}},
        {},
        (None, 0.1205, 0.90025, None, None),
    ),
    (
        "ollama",
        {
            "load_duration": 1_000_000,
            "prompt_eval_duration": 200_000_000,
            "eval_duration": 3_000_000_000,
            "total_duration": 3_300_000_000,
        },
        {},
        (None, 0.2, 3.0, 0.201, 3.3),
    ),
    (
        "lm_studio",
        {"stats": {"time_to_first_token": 0.1, "generation_time": 0.5}},
        {},
        (None, None, 0.5, 0.1, None),
    ),
    ("bedrock", {"metrics": {"latencyMs": 750}}, {}, (None, None, None, None, 0.75)),
    (
        "bedrock",
        {"amazon-bedrock-invocationMetrics": {"firstByteLatency": 200, "invocationLatency": 900}},
        {},
        (None, None, 0.7, 0.2, 0.9),
    ),
    ("openrouter", {"openrouter_metadata": {"generation_time": 431}}, {}, (None, None, None, None, 0.431)),
    (
        "openai",
        {"object": "chat.completion"},
        {"openai-processing-ms": "812"},
        (None, None, None, None, 0.812),
    ),
    ("gemini", {"object": "chat.completion"}, {"Server-Timing": "gfet4t7; dur=914"}, (None,) * 4 + (0.914,)),
    (
        "specclient",
        {"specclient": {"timing": {"queue": {"seconds": 0.1, "source": "engine"}, "prefill": None}}},
        {},
        (0.1, None, None, None, None),
    ),
    ("mistral", {"usage": {"total_tokens": 3}}, {}, (None,) * 5),
]


@pytest.mark.parametrize(("provider", "body", "headers", "expected"), TIMES)
def test_times(
    provider: str, body: dict[str, Any], headers: dict[str, str], expected: tuple[float | None, ...]
) -> None:
    reading = read(provider, body, headers=headers)
    assert phases(reading) == expected
    assert reading.notes == ()


@pytest.mark.parametrize(
    ("provider", "body", "headers", "expected"),
    [row for row in TIMES if row[0] in ("groq", "cerebras", "vllm", "llama_cpp")],
)
def test_an_unknown_address_is_read_by_the_same_distinctive_names(
    provider: str, body: dict[str, Any], headers: dict[str, str], expected: tuple[float | None, ...]
) -> None:
    reading = read("openai_compatible", body, headers=headers)
    assert phases(reading)[:3] == expected[:3]


def test_arithmetic_is_marked_as_such() -> None:
    reading = read("dynamo", {"nvext": {"timing": {"ttft_ms": 110, "total_time_ms": 510}}})
    assert reading.decode is not None
    assert (reading.decode.source, reading.decode.field) == (
        "derived",
        "nvext.timing.total_time_ms, nvext.timing.ttft_ms",
    )
    assert reading.server_total is not None
    assert reading.server_total.source == "server"


def test_a_first_token_time_that_starts_at_scheduling_is_prefill() -> None:
    reading = read("vllm", {"metrics": {"time_to_first_token_ms": 40.0}})
    assert phases(reading) == (None, 0.04, None, None, None)
    with_queue = read("vllm", {"metrics": {"time_to_first_token_ms": 40.0, "queue_time_ms": 10.0}})
    assert with_queue.ttft_includes_queue is True


COUNTS: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("openai", details(49, 107, 226), (49, 107, None, None, "provider_usage", 107)),
    ("azure", details(49, 107, 226), (49, 107, None, None, "provider_usage", 107)),
    ("cerebras", details("49", "107", 226), (49, 107, None, None, "provider_usage", 107)),
    ("deepseek", details(None, None), (None, None, None, None, None, None)),
    ("lmdeploy", details(None, None), (None, None, None, None, None, None)),
    ("xai", details(0, 0), (0, 0, None, None, "provider_usage", None)),
    ("openrouter", details(3, None), (3, None, None, None, "provider_usage", None)),
    (
        "oci",
        {
            "usage": {
                "completionTokensDetails": {"acceptedPredictionTokens": 5, "rejectedPredictionTokens": 2}
            }
        },
        (5, 2, None, None, "provider_usage", None),
    ),
    (
        "vercel",
        {"providerMetadata": {"openai": {"acceptedPredictionTokens": 5, "rejectedPredictionTokens": 2}}},
        (5, 2, None, None, "provider_metrics", None),
    ),
    (
        "fireworks",
        {
            "perf_metrics": {
                "speculation-prompt-tokens": "100",
                "speculation-prompt-matched-tokens": "90",
                "speculation-acceptance": "1:10/12,2:5/10",
            }
        },
        (90, 10, 22, 15, "provider_metrics", 0),
    ),
    ("fireworks", {"perf_metrics": {"speculation-prompt-tokens": "100"}}, (None, None, None, None, None, 0)),
    (
        "vllm",
        {"metrics": {"speculative_decoding": {"num_draft_tokens": 40, "num_accepted_draft_tokens": 30}}},
        (None, None, 40, 30, "provider_metrics", None),
    ),
    (
        "vllm",
        {
            "choices": [
                {"speculative_decoding_stats": {"num_draft_tokens": 4, "num_accepted_draft_tokens": 3}}
            ]
        },
        (None, None, 4, 3, "provider_metrics", None),
    ),
    (
        "llama_cpp",
        {"timings": {"prompt_ms": 1, "predicted_ms": 1, "draft_n": 14, "draft_n_accepted": 9}},
        (None, None, 14, 9, "provider_metrics", None),
    ),
    (
        "sglang",
        {
            "choices": [],
            "sglext": {"spec_tokens_details": {"spec_num_proposed_drafts": 9, "spec_num_correct_drafts": 4}},
        },
        (None, None, 9, 4, "provider_metrics", None),
    ),
    (
        "sglang",
        {"sglext": {"spec_tokens_details": [{"spec_draft_token_num": 9, "spec_accept_token_num": 4}]}},
        (None, None, 9, 4, "provider_metrics", None),
    ),
    (
        "lm_studio",
        {
            "stats": {
                "total_draft_tokens_count": 20,
                "accepted_draft_tokens_count": 12,
                "ignored_draft_tokens_count": 3,
            }
        },
        (None, None, 17, 12, "provider_metrics", None),
    ),
]


@pytest.mark.parametrize(("provider", "body", "expected"), COUNTS)
def test_counts(provider: str, body: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = read(provider, body)
    shown = (found.accepted, found.rejected, found.drafted, found.accepted_draft, found.counts_source)
    assert (*shown, found.extra_billed) == expected
    assert found.notes == ()


def test_openais_own_example_is_charged_once() -> None:
    """118 tokens without a prediction, 226 with one: 107 of them rejected, the accepted ones ordinary."""
    reading = read("openai", details(49, 107, 226))
    assert reading.usage.completion == 226
    assert reading.extra_billed == 107
    assert reading.usage.completion - reading.extra_billed == 119
    assert reading.acceptance_rate == pytest.approx(49 / 156)


def test_other_speculation_figures() -> None:
    body = {
        "metrics": {
            "speculative_decoding": {
                "mean_acceptance_length": 2.5,
                "draft_acceptance_rate": 0.75,
            }
        }
    }
    found = read("vllm", body)
    assert (found.mean_acceptance_length, found.acceptance_rate) == (2.5, 0.75)
    sglang = read("sglang", {"sglext": {"spec_tokens_details": {"spec_verify_ct": 12}}})
    assert sglang.forward_passes == 12
    trt = read("tensorrt_llm", {"choices": [{"avg_decoded_tokens_per_iter": 2.1}]})
    assert trt.mean_acceptance_length == 2.1
    assert read("sambanova", {"usage": {"acceptance_rate": 0.6}}).acceptance_rate == 0.6


def test_usage_of_all_spellings() -> None:
    body = {
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 20,
            "total_tokens": 30,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 6},
        }
    }
    found = read("openai", body).usage
    assert (found.prompt, found.completion, found.total, found.cached, found.reasoning) == (10, 20, 30, 4, 6)
    other = read("openai", {"usage": {"input_tokens": 1, "output_tokens": 2}}).usage
    assert (other.prompt, other.completion, other.total) == (1, 2, None)


def test_a_later_null_erases_nothing_and_a_later_value_wins() -> None:
    first, last = {**CHUNK, **details(5, 1)}, {**CHUNK, **details(9, None)}
    reading = read("openai", first, {**CHUNK, "usage": None}, last, {**CHUNK, **details(None, None)})
    assert (reading.accepted, reading.rejected) == (9, 1)


def test_usage_beside_choices_is_read() -> None:
    chunk = {**CHUNK, "choices": [{"finish_reason": "length"}], **details(5, 1)}
    assert read("openai", chunk).accepted == 5


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


def test_a_header_sent_before_a_stream_cannot_time_it() -> None:
    reading = read("openai", CHUNK, headers={"openai-processing-ms": "80"})
    assert reading.server_total is None
    assert [code for code, _ in reading.notes] == ["header_precedes_stream"]


def test_several_objects_without_a_name_are_a_stream_too() -> None:
    piece = {"object": "text_completion", "choices": [{"text": "a"}]}
    headers = {"openai-processing-ms": "80"}
    assert read("openai", piece, headers=headers).server_total is not None
    assert read("openai", piece, piece, headers=headers).server_total is None


def test_llama_cpp_counts_tokens_even_where_a_stream_has_no_usage() -> None:
    timings = {"cache_n": 68, "prompt_n": 1, "prompt_ms": 2, "predicted_n": 17, "predicted_ms": 3}
    usage = read("llama_cpp", {**CHUNK, "timings": timings}).usage
    assert (usage.prompt, usage.cached, usage.completion) == (69, 68, 17)


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
