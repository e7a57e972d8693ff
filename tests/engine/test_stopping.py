"""The end of a text holds inside an accepted block exactly as it does between blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from engine_kit import EOS, VOCAB, Bench, ByteTokenizer, Scripted, oracle

from specclient_engine import GenerationRequest
from specclient_engine.errors import ContextTooLong, NotEnoughMemory, UnsupportedRequest


class Reciter:
    """A model that says `script` from its first answer position on, whatever it reads."""

    vocab_size = VOCAB
    max_context = 64
    token_capacity = 200
    can_roll_back = True
    rollback_reason = None
    device = torch.device("cpu")

    def __init__(self, script: Sequence[int], prompt: int) -> None:
        self.script = script
        self.prompt = prompt
        self.longest = 0

    def allocate(self, tokens: int) -> int:
        return 0

    def release(self, slot: int) -> None: ...

    def forward(self, chunks: Sequence[Any]) -> torch.Tensor:
        (chunk,) = chunks
        self.longest = max(self.longest, chunk.start + len(chunk.tokens))
        logits = torch.zeros(chunk.rows_wanted, VOCAB)
        for row in range(chunk.rows_wanted):
            at = chunk.start + chunk.logits_from + row - self.prompt + 1
            logits[row, self.script[at] if at < len(self.script) else 0] = 1.0
        return logits


def reciting(text: str | Sequence[int], tokenizer: ByteTokenizer | None = None) -> Bench:
    script = list(text.encode()) if isinstance(text, str) else list(text)
    bench = Bench(Reciter(script, prompt=3))
    bench.use(oracle([*script, *[0] * 99]))
    if tokenizer is not None:
        bench.engine.tokenizer = tokenizer
    return bench


class SeveralEnds(ByteTokenizer):
    eos_ids = frozenset({EOS, ord("!")})


class NoEnd(ByteTokenizer):
    eos_ids = frozenset()


@pytest.mark.parametrize(
    ("tokenizer", "text", "ids"),
    [(ByteTokenizer(), "ab!c", 5), (SeveralEnds(), "ab", 3), (NoEnd(), "ab!cde", 8)],
    ids=["one end", "several", "none"],
)
def test_an_end_token_inside_a_block_ends_the_text(tokenizer: ByteTokenizer, text: str, ids: int) -> None:
    with reciting([*b"ab!c", EOS, *b"de"], tokenizer).engine as engine:
        handle = engine.submit(GenerationRequest(prompt_ids=[1, 2, 3], max_tokens=8))
        steps = list(handle)
    assert "".join(step.text for step in steps)[: len(text)] == text
    assert sum(len(step.token_ids) for step in steps) == ids
    assert handle.stats is not None
    assert handle.stats.completion_tokens == ids
    # The pass drafted all the rest; what was accepted behind the end does not count.
    drafted, accepted = handle.stats.by_source["test"]
    assert drafted == 6
    assert accepted == min(ids - 1, 6)


def test_ignoring_the_end_goes_on_to_the_cap() -> None:
    bench = reciting([97, EOS, 98, 99])
    answer = bench.ask(max_tokens=4, ignore_eos=True)
    assert answer.token_ids == [97, EOS, 98, 99]
    assert (answer.text, answer.stats.finish_reason) == ("abc", "length")
    bench.engine.close()


@pytest.mark.parametrize("stop", ["b", "bc", "abc", "cdefgh", "xyz0", "h"])
@pytest.mark.parametrize("drafting", [True, False])
def test_a_stop_string_anywhere_in_a_block_is_found(stop: str, drafting: bool) -> None:
    text = "abcdefghijklmnopqrstuvwxyz0123"
    bench = reciting(text)
    answer = bench.ask(max_tokens=50, stop=[stop, "never"], speculation="auto" if drafting else "off")
    assert answer.text == text[: text.index(stop)]
    assert answer.token_ids == list(text[: text.index(stop) + len(stop)].encode())
    assert answer.stats.finish_reason == "stop"
    bench.engine.close()


def test_no_part_of_a_stop_string_is_shown_early_and_what_never_completes_is_flushed() -> None:
    bench = reciting("abcDEFGxDEFGH")
    bench.use(Scripted(lambda *_: ()))
    answer = bench.ask(max_tokens=13, stop=["DEFGHIJ"])
    shown = [step.text for step in answer.steps]
    assert shown[:8] == ["a", "b", "c", "", "", "", "", "DEFGx"]
    assert answer.text == "abcDEFGxDEFGH"
    assert answer.stats.finish_reason == "length"
    bench.engine.close()


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_the_cap_holds_inside_a_block(cap: int) -> None:
    bench = reciting("abcdefgh")
    answer = bench.ask(max_tokens=cap)
    assert answer.text == "abcdefgh"[:cap]
    assert answer.stats.finish_reason == "length"
    assert bench.engine.runner.longest <= 3 + cap
    bench.engine.close()


@pytest.mark.parametrize("max_tokens", [None, 1000])
def test_the_context_ends_the_text_and_no_block_crosses_it(max_tokens: int | None) -> None:
    bench = reciting("x" * 200)
    answer = bench.ask(max_tokens=max_tokens)
    assert len(answer.token_ids) == Reciter.max_context - 3
    assert answer.stats.finish_reason == "length"
    assert bench.engine.runner.longest <= Reciter.max_context
    assert bench.ask(max_tokens=2).text == "xx"
    bench.engine.close()


def test_what_can_never_run_is_refused_with_the_figures() -> None:
    bench = reciting("x")
    with pytest.raises(ContextTooLong, match=r"70 tokens.*64"):
        bench.ask(list(range(70)))
    bench.engine.runner.token_capacity = 30
    with pytest.raises(NotEnoughMemory, match=r"40 tokens.*30"):
        bench.ask(list(range(40)))
    for wrong in (
        {"prompt": []},
        {"prompt": [VOCAB]},
        {"prompt": [-1]},
        {"max_tokens": 0},
    ):
        with pytest.raises(UnsupportedRequest):
            bench.ask(**wrong)
    bench.engine.close()
