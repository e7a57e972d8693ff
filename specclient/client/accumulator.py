"""From a stream's chunks to typed events, and to the answer as far as it has come. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from specclient.client.event_types import ArgumentsEvent, LogprobsEvent, TextDoneEvent, TextEvent
from specclient.report import Report
from specclient.types import (
    ChatCompletion,
    ChatCompletionChunk,
    ChoiceDelta,
    ChoiceLogprobs,
    ChunkChoice,
    Function,
    ToolCallDelta,
    parse,
)


@dataclass(frozen=True, slots=True)
class ChunkEvent:
    """A chunk as it came; `snapshot` is the answer as far as it has come by the time it is looked at."""

    chunk: ChatCompletionChunk
    accumulator: Accumulator = field(repr=False)
    type: Literal["chunk"] = "chunk"

    @property
    def snapshot(self) -> ChatCompletion:
        return self.accumulator.snapshot()


Event = ChunkEvent | TextEvent | TextDoneEvent | ArgumentsEvent | LogprobsEvent


@dataclass(slots=True)
class _Tool:
    id: str | None = None
    type: str = "function"
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _ChoiceState:
    role: str = "assistant"
    content: str = ""
    refusal: str = ""
    reasoning: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields of one server's own, such as `reasoning`."""
    tools: dict[int, _Tool] = field(default_factory=dict)
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    finish_reason: str | None = None

    def tool(self, delta: ToolCallDelta) -> tuple[int, _Tool]:
        """The tool call that a delta belongs to.

        Where the index is missing: a known id is that call, a new id or a function's name begins another
        one, and anything else goes on with the last.
        """
        index = delta.index
        name = delta.function.name if isinstance(delta.function, Function) else None
        if not isinstance(index, int):
            same = [place for place, tool in self.tools.items() if delta.id and tool.id == delta.id]
            if same:
                index = same[0]
            elif self.tools and not delta.id and not name:
                index = max(self.tools)
            else:
                index = max(self.tools, default=-1) + 1
        return index, self.tools.setdefault(index, _Tool())


class Accumulator:
    """Takes a stream's chunks one by one."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: Any = None
        self._report: Report | None = None
        self._choices: dict[int, _ChoiceState] = {}

    def feed(self, chunk: ChatCompletionChunk) -> list[Event]:
        """The events of one chunk, the chunk itself first."""
        for name in ("id", "created", "model", "service_tier", "system_fingerprint"):
            value = getattr(chunk, name)
            if value is not None:
                self._head[name] = value
        self._usage = chunk.usage or self._usage
        self._report = chunk.specclient or self._report
        events: list[Event] = [ChunkEvent(chunk, self)]
        for choice in chunk.choices if isinstance(chunk.choices, list) else ():
            if isinstance(choice, ChunkChoice):  # what could not be read as one was kept as it came
                events += self._choice(choice)
        return events

    def _choice(self, choice: ChunkChoice) -> list[Event]:
        index = choice.index if isinstance(choice.index, int) else 0
        state = self._choices.setdefault(index, _ChoiceState())
        delta = choice.delta
        events: list[Event] = []
        if isinstance(delta, ChoiceDelta):
            state.role = _string(delta.role) or state.role
            if content := _string(delta.content):
                state.content += content
                events.append(TextEvent("content.delta", content, state.content))
            if refusal := _string(delta.refusal):
                state.refusal += refusal
                events.append(TextEvent("refusal.delta", refusal, state.refusal))
            state.reasoning += _string(delta.reasoning_content)
            for name, value in (delta.model_extra or {}).items():
                state.extra[name] = _joined(state.extra.get(name), value)
            for part in delta.tool_calls if isinstance(delta.tool_calls, list) else ():
                if isinstance(part, ToolCallDelta):
                    events += self._tool(state, part)
        if isinstance(choice.logprobs, ChoiceLogprobs):
            events += self._logprobs(state, choice.logprobs)
        if choice.finish_reason and state.finish_reason is None:
            state.finish_reason = choice.finish_reason
            events += self._finished(state)
        return events

    def _tool(self, state: _ChoiceState, part: ToolCallDelta) -> list[Event]:
        index, tool = state.tool(part)
        tool.id = _string(part.id) or tool.id
        tool.type = _string(part.type) or tool.type
        if not isinstance(part.function, Function):
            return []
        tool.name = tool.name or _string(part.function.name)
        arguments = _string(part.function.arguments)
        if not arguments:
            return []
        tool.arguments += arguments
        kind: Literal["tool_calls.function.arguments.delta"] = "tool_calls.function.arguments.delta"
        return [ArgumentsEvent(kind, tool.name, index, tool.arguments, arguments)]

    def _logprobs(self, state: _ChoiceState, logprobs: ChoiceLogprobs) -> list[Event]:
        events: list[Event] = []
        if isinstance(logprobs.content, list) and logprobs.content:
            so_far = state.logprobs.setdefault("content", [])
            so_far += logprobs.content
            events.append(LogprobsEvent("logprobs.content.delta", logprobs.content, so_far))
        if isinstance(logprobs.refusal, list) and logprobs.refusal:
            so_far = state.logprobs.setdefault("refusal", [])
            so_far += logprobs.refusal
            events.append(LogprobsEvent("logprobs.refusal.delta", logprobs.refusal, so_far))
        return events

    def _finished(self, state: _ChoiceState) -> list[Event]:
        events: list[Event] = []
        if state.content:
            events.append(TextDoneEvent("content.done", state.content))
        if state.refusal:
            events.append(TextDoneEvent("refusal.done", state.refusal))
        if "content" in state.logprobs:
            events.append(LogprobsEvent("logprobs.content.done", state.logprobs["content"]))
        if "refusal" in state.logprobs:
            events.append(LogprobsEvent("logprobs.refusal.done", state.logprobs["refusal"]))
        for index, tool in sorted(state.tools.items()):
            done = ArgumentsEvent("tool_calls.function.arguments.done", tool.name, index, tool.arguments)
            events.append(done)
        return events

    def snapshot(self) -> ChatCompletion:
        """The answer as far as it came."""
        choices = []
        for index, state in sorted(self._choices.items()):
            message: dict[str, Any] = {**state.extra, "role": state.role, "content": state.content or None}
            if isinstance(parts := state.extra.get("content_parts"), list):
                message["content_parts"] = _whole_parts(parts, state)
            if state.refusal:
                message["refusal"] = state.refusal
            if state.reasoning:
                message["reasoning_content"] = state.reasoning
            if state.tools:
                message["tool_calls"] = [
                    {
                        "id": tool.id,
                        "type": tool.type,
                        "function": {"name": tool.name, "arguments": tool.arguments},
                    }
                    for _, tool in sorted(state.tools.items())
                ]
            choice = {"index": index, "message": message, "finish_reason": state.finish_reason}
            if state.logprobs:
                choice["logprobs"] = state.logprobs
            choices.append(choice)
        answer = {**self._head, "object": "chat.completion", "choices": choices}
        if self._usage is not None:
            answer["usage"] = self._usage
        completion = parse(ChatCompletion, answer)
        completion.specclient = self._report
        return completion


def _whole_parts(pieces: list[Any], state: _ChoiceState) -> list[Any]:
    """The parts of an answer whose parts came in pieces: reasoning, text, and whatever else there was."""
    known = ("text", "thinking")
    others = [part for part in pieces if isinstance(part, dict) and part.get("type") not in known]
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": state.reasoning}]}
    text = {"type": "text", "text": state.content}
    return [*([thought] if state.reasoning else []), *([text] if state.content else []), *others]


def _joined(before: Any, value: Any) -> Any:
    """Pieces of a field: text and lists go on, of anything else the last one counts."""
    if type(before) is type(value) and isinstance(value, str | list):
        return before + value
    return before if value is None else value


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
