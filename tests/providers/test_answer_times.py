"""Every endpoint's timings in one vocabulary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.reading import CHUNK, phases, read

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


def test_a_header_sent_before_a_stream_cannot_time_it() -> None:
    reading = read("openai", CHUNK, headers={"openai-processing-ms": "80"})
    assert reading.server_total is None
    assert [code for code, _ in reading.notes] == ["header_precedes_stream"]


def test_several_objects_without_a_name_are_a_stream_too() -> None:
    piece = {"object": "text_completion", "choices": [{"text": "a"}]}
    headers = {"openai-processing-ms": "80"}
    assert read("openai", piece, headers=headers).server_total is not None
    assert read("openai", piece, piece, headers=headers).server_total is None
