"""A tiny model, a byte tokenizer, and proposers good and bad, for the engine's tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from specclient_engine import Engine, GenerationRequest, GenerationStats, Step
from specclient_engine.api import Draft, Proposer
from specclient_engine.cost import CostCurve
from specclient_engine.request_state import RequestState
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.scheduler import SpeculationTools

EOS = 256
VOCAB = 260
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


class ByteTokenizer:
    """A token a byte; 256 ends a text, 257 to 259 stand for nothing."""

    vocab_size = VOCAB
    eos_ids = frozenset({EOS})

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, offsets = [], []
        for at, character in enumerate(text):
            raw = character.encode()
            ids.extend(raw)
            offsets.extend([(at, at + 1)] * len(raw))
        return ids, offsets

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else b""


def tiny_model(kind: str = "llama", seed: int = 0, **sizes: Any) -> Any:
    """A random model of a family of transformers, in float32, whose logits lie well apart."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, **(SIZES | sizes))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2 and "norm" not in name:
                parameter.mul_(4)
    return model.eval()


class FullLength:
    """A draft length policy that verifies everything."""

    def choose(self, requests: Sequence[tuple[Draft, int]]) -> list[int]:
        return [len(draft.tokens) for draft, _ in requests]


def draft_of(tokens: Sequence[int], source: str = "test") -> Draft:
    return Draft(tuple(tokens), (source,) * len(tokens), (0.9,) * len(tokens))


class Scripted:
    """Drafts what `script(output so far, limit)` says."""

    def __init__(self, script: Callable[[list[int], int], Sequence[int]]) -> None:
        self.script = script
        self.output: list[int] = []

    def propose(self, limit: int) -> Draft:
        return draft_of(self.script(self.output, limit))

    def commit(self, tokens: Sequence[int], drafted: Draft, accepted: int) -> None:
        assert list(tokens[:accepted]) == list(drafted.tokens[:accepted])
        self.output.extend(tokens)


def oracle(truth: Sequence[int]) -> Scripted:
    """Knows the answer."""
    return Scripted(lambda output, limit: truth[len(output) : len(output) + limit])


def adversaries(truth: Sequence[int], seed: int = 0) -> dict[str, Scripted]:
    """Proposers that must change nothing, by name."""
    dice = random.Random(seed)

    def sometimes_wrong(output: list[int], limit: int) -> list[int]:
        known = truth[len(output) : len(output) + dice.randint(0, limit)]
        return [token if dice.random() < 0.8 else dice.randrange(VOCAB) for token in known]

    return {
        "oracle": oracle(truth),
        "wrong": Scripted(lambda output, limit: [(truth[len(output)] + 1) % VOCAB] * limit),
        "random": Scripted(lambda _, limit: [dice.randrange(VOCAB) for _ in range(dice.randint(0, limit))]),
        "sometimes wrong": Scripted(sometimes_wrong),
        "too long": Scripted(lambda output, _: [*truth[len(output) :], *([7] * 500)]),
        "eos inside": Scripted(lambda output, _: [*truth[len(output) : len(output) + 2], EOS, 1, 2]),
        "foreign ids": Scripted(lambda output, _: [*truth[len(output) : len(output) + 2], VOCAB, -1, 10**9]),
        "nothing": Scripted(lambda *_: ()),
        "failing": Scripted(lambda output, _: 1 // 0 if len(output) > 3 else [1]),  # type: ignore[arg-type,return-value]
    }


@dataclass
class Answer:
    """Everything a request gave."""

    token_ids: list[int]
    text: str
    steps: list[Step]
    stats: GenerationStats

    @classmethod
    def read(cls, handle: Any) -> Answer:
        steps = list(handle)
        assert handle.stats is not None
        ids = [token for step in steps for token in step.token_ids]
        return cls(ids, "".join(step.text for step in steps), steps, handle.stats)

    @property
    def logprobs(self) -> list[Any]:
        """(the token's own, the most likely ones) for each token, where they were asked for."""
        return [pair for step in self.steps for pair in step.logprobs]


def assert_same(answer: Answer, plain: Answer, who: str = "") -> None:
    """The text, the tokens, their end and what each was given as its chance; not the other candidates."""
    assert answer.token_ids == plain.token_ids, who
    assert answer.text == plain.text, who
    assert answer.stats.finish_reason == plain.stats.finish_reason, who
    for (token, _), (plain_token, _) in zip(answer.logprobs, plain.logprobs, strict=True):
        assert token.token_id == plain_token.token_id
        assert token.logprob == pytest.approx(plain_token.logprob, abs=1e-4)


class Bench:
    """An engine over a tiny runner whose requests draft with whatever `use` was given."""

    def __init__(
        self, runner: Any, *, lengths: Any = None, prefill_chunk: int = 16, on_hidden: Any = None
    ) -> None:
        self.proposer: Callable[[RequestState], Proposer] = lambda _: Scripted(lambda *_: ())
        self.cost = CostCurve([1], [0.001])
        self.release: Callable[[RequestState], None] = lambda _: None
        tools = SpeculationTools(
            lambda state: self.proposer(state),
            lengths or FullLength(),
            self.cost,
            lambda state: self.release(state),
            on_hidden,
        )
        self.engine = Engine(runner, ByteTokenizer(), tools, prefill_chunk=prefill_chunk)

    def use(self, proposer: Proposer) -> None:
        self.proposer = lambda _: proposer

    def ask(self, prompt: Sequence[int] = (1, 2, 3), **wanted: Any) -> Answer:
        return Answer.read(self.engine.submit(GenerationRequest(prompt_ids=prompt, **wanted)))

    def plain(self, prompt: Sequence[int] = (1, 2, 3), **wanted: Any) -> Answer:
        return self.ask(prompt, speculation="off", **wanted)


class RecordingRunner:
    """Passes everything on to a runner and remembers the shapes of its passes."""

    def __init__(self, inner: PlainRunner) -> None:
        self.inner = inner
        self.passes: list[tuple[tuple[int, int, int], ...]] = []
        self.live: set[int] = set()
        self.before_forward: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def allocate(self, tokens: int) -> int:
        slot = self.inner.allocate(tokens)
        self.live.add(slot)
        return slot

    def release(self, slot: int) -> None:
        self.live.remove(slot)
        self.inner.release(slot)

    def forward(self, chunks: Sequence[Any]) -> torch.Tensor:
        self._record(chunks)
        return self.inner.forward(chunks)

    def begin(self, chunks: Sequence[Any]) -> int:
        """As `forward`, of runners that compute logits in pieces."""
        self._record(chunks)
        inner: Any = self.inner
        return int(inner.begin(chunks))

    def _record(self, chunks: Sequence[Any]) -> None:
        self.before_forward()
        self.passes.append(tuple((chunk.start, len(chunk.tokens), chunk.rows_wanted) for chunk in chunks))
