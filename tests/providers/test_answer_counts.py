"""Every endpoint's counters in one vocabulary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.reading import CHUNK, details, read

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


def test_llama_cpp_counts_tokens_even_where_a_stream_has_no_usage() -> None:
    timings = {"cache_n": 68, "prompt_n": 1, "prompt_ms": 2, "predicted_n": 17, "predicted_ms": 3}
    usage = read("llama_cpp", {**CHUNK, "timings": timings}).usage
    assert (usage.prompt, usage.cached, usage.completion) == (69, 68, 17)
