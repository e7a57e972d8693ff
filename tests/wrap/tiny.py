"""A real engine over a random model of 30,000 parameters: it says nonsense, the same each time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from specclient_engine import Engine
from specclient_engine.cost import CostCurve
from specclient_engine.proposers import build_proposer
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.scheduler import SpeculationTools
from tests.engine.engine_kit import ByteTokenizer, FullLength, RecordingRunner, tiny_model


class TinyEngine(Engine):
    """Speaks bytes; its chat template is the contents, one a line."""

    def chat_prompt(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> list[int]:
        return self.tokenizer.encode("\n".join(str(message["content"]) for message in messages))

    def text_prompt(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)


class EndlessTokenizer(ByteTokenizer):
    """No token ends a text, so that a random model says something."""

    eos_ids: frozenset[int] = frozenset()


def tiny_engine(pause: float = 0.0) -> TinyEngine:
    """Drafts from predictions, always in full length; `pause` are seconds before each pass. Close it."""
    tokenizer = EndlessTokenizer()

    def proposer(state: Any) -> Any:
        request = state.request
        return build_proposer(request.prompt_ids, request.predictions, tokenizer)

    tools = SpeculationTools(proposer, FullLength(), CostCurve([1], [0.001]))
    runner = RecordingRunner(PlainRunner(tiny_model()))
    runner.before_forward = lambda: time.sleep(pause)
    return TinyEngine(runner, tokenizer, tools, prefill_chunk=16)
