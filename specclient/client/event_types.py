"""The events of `chat.completions.stream`, but for the chunk itself; names and fields are OpenAI's.

`parsed` and `parsed_arguments` are there and None: answers are not parsed into schemas here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class TextEvent:
    """`delta` is what came, `snapshot` the whole text so far."""

    type: Literal["content.delta", "refusal.delta"]
    delta: str
    snapshot: str
    parsed: None = None


@dataclass(frozen=True, slots=True)
class TextDoneEvent:
    """The whole text of the content, or of the refusal."""

    type: Literal["content.done", "refusal.done"]
    content: str
    parsed: None = None

    @property
    def refusal(self) -> str:
        return self.content


@dataclass(frozen=True, slots=True)
class ArgumentsEvent:
    """`arguments` is the text of the arguments so far, `arguments_delta` what came ("" when done)."""

    type: Literal["tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"]
    name: str
    index: int
    arguments: str
    arguments_delta: str = ""
    parsed_arguments: None = None


@dataclass(frozen=True, slots=True)
class LogprobsEvent:
    """Log-probabilities of the tokens that came; when done, of all.

    `snapshot` are all so far: one list for the whole stream, which grows.
    """

    type: Literal[
        "logprobs.content.delta", "logprobs.refusal.delta", "logprobs.content.done", "logprobs.refusal.done"
    ]
    content: list[Any]
    snapshot: list[Any] | None = None

    @property
    def refusal(self) -> list[Any]:
        return self.content
