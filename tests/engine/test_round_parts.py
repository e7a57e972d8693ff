"""The decoding's parts: made of drafting, passes and a rest, and never more than the whole."""

from __future__ import annotations

from engine_kit import Bench, ByteTokenizer

from specclient_engine import GenerationRequest
from specclient_engine.api import GenerationStats


def run(bench: Bench, **options: object) -> GenerationStats:
    prompt = ByteTokenizer().encode("abcabcabc")
    request = GenerationRequest(prompt_ids=prompt, max_tokens=24, ignore_eos=True, **options)  # type: ignore[arg-type]
    handle = bench.engine.submit(request)
    for _ in handle:
        pass
    return handle.stats


def test_drafting_and_passes_lie_inside_the_decoding(bench: Bench) -> None:
    stats = run(bench)
    decoding = stats.finished - stats.first_token
    assert stats.verifying > 0
    assert 0 <= stats.drafting + stats.verifying <= decoding


def test_without_speculation_the_passes_are_counted_all_the_same(bench: Bench) -> None:
    stats = run(bench, speculation="off")
    assert 0 < stats.verifying <= stats.finished - stats.first_token
