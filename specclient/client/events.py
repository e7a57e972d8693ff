"""`chat.completions.stream(...)`: a stream as typed events, with the answer so far at each one.

    with client.chat.completions.stream(messages=…) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="")
        answer = stream.get_final_completion()

Event types: `chunk` (every chunk as it came), `content.delta` and `content.done`, `refusal.delta` and
`refusal.done`, `tool_calls.function.arguments.delta` and `tool_calls.function.arguments.done`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from specclient.client.stream import AsyncStream, Stream
from specclient.errors import SpecclientError
from specclient.report import Report
from specclient.types import ChatCompletion, ChatCompletionChunk, parse


@dataclass(frozen=True, slots=True)
class ChunkEvent:
    """A chunk as it came; `snapshot` is the answer as far as it has come by the time it is looked at."""

    chunk: ChatCompletionChunk
    accumulator: Accumulator = field(repr=False)
    type: Literal["chunk"] = "chunk"

    @property
    def snapshot(self) -> ChatCompletion:
        return self.accumulator.snapshot()


@dataclass(frozen=True, slots=True)
class TextEvent:
    """`delta` is what came, `snapshot` the whole text so far."""

    type: Literal["content.delta", "refusal.delta"]
    delta: str
    snapshot: str


@dataclass(frozen=True, slots=True)
class TextDoneEvent:
    """The whole text of the content, or of the refusal."""

    type: Literal["content.done", "refusal.done"]
    content: str

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


Event = ChunkEvent | TextEvent | TextDoneEvent | ArgumentsEvent


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
    tools: dict[int, _Tool] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    finish_reason: str | None = None

    def tool(self, delta: Any) -> tuple[int, _Tool]:
        """The tool call that a delta belongs to.

        Where the index is missing: a known id is that call, a new id or a function's name begins another
        one, and anything else goes on with the last.
        """
        index = delta.index
        name = delta.function.name if delta.function is not None else None
        if index is None:
            same = [place for place, tool in self.tools.items() if delta.id and tool.id == delta.id]
            if same:
                index = same[0]
            elif self.tools and not delta.id and not name:
                index = max(self.tools)
            else:
                index = max(self.tools, default=-1) + 1
        return index, self.tools.setdefault(index, _Tool())


class Accumulator:
    """Chunks -> events and the answer so far. Pure."""

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
        events: list[Event] = []
        for choice in chunk.choices or ():
            events += self._choice(choice)
        return [ChunkEvent(chunk, self), *events]

    def _choice(self, choice: Any) -> list[Event]:
        state = self._choices.setdefault(choice.index or 0, _ChoiceState())
        delta = choice.delta
        events: list[Event] = []
        if delta is not None:
            state.role = delta.role or state.role
            if delta.content:
                state.content += delta.content
                events.append(TextEvent("content.delta", delta.content, state.content))
            if delta.refusal:
                state.refusal += delta.refusal
                events.append(TextEvent("refusal.delta", delta.refusal, state.refusal))
            if delta.reasoning_content:
                state.reasoning += delta.reasoning_content
            for part in delta.tool_calls or ():
                events += self._tool(state, part)
        if choice.logprobs is not None and choice.logprobs.content:
            state.logprobs += choice.logprobs.content
        if choice.finish_reason and state.finish_reason is None:
            state.finish_reason = choice.finish_reason
            events += self._finished(state)
        return events

    def _tool(self, state: _ChoiceState, part: Any) -> list[Event]:
        index, tool = state.tool(part)
        tool.id = part.id or tool.id
        tool.type = part.type or tool.type
        if part.function is None:
            return []
        tool.name = tool.name or part.function.name or ""
        if not part.function.arguments:
            return []
        tool.arguments += part.function.arguments
        return [
            ArgumentsEvent(
                "tool_calls.function.arguments.delta",
                tool.name,
                index,
                tool.arguments,
                part.function.arguments,
            )
        ]

    def _finished(self, state: _ChoiceState) -> list[Event]:
        events: list[Event] = []
        if state.content:
            events.append(TextDoneEvent("content.done", state.content))
        if state.refusal:
            events.append(TextDoneEvent("refusal.done", state.refusal))
        for index, tool in sorted(state.tools.items()):
            done = ArgumentsEvent("tool_calls.function.arguments.done", tool.name, index, tool.arguments)
            events.append(done)
        return events

    def snapshot(self) -> ChatCompletion:
        """The answer as far as it came."""
        choices = []
        for index, state in sorted(self._choices.items()):
            message: dict[str, Any] = {"role": state.role, "content": state.content or None}
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
                choice["logprobs"] = {"content": state.logprobs}
            choices.append(choice)
        answer = {**self._head, "object": "chat.completion", "choices": choices}
        if self._usage is not None:
            answer["usage"] = self._usage
        completion = parse(ChatCompletion, answer)
        completion.specclient = self._report
        return completion


def _incomplete() -> SpecclientError:
    return SpecclientError("The stream was not read to its end, so there is no final completion.")


class ChatStream:
    """The events of one stream. See the module's docstring."""

    def __init__(self, stream: Stream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self._accumulator = Accumulator()
        self._events = self._read()

    def _read(self) -> Iterator[Event]:
        for chunk in self._stream:
            yield from self._accumulator.feed(chunk)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    @property
    def current_completion_snapshot(self) -> ChatCompletion:
        return self._accumulator.snapshot()

    @property
    def specclient(self) -> Report | None:
        """The report, once the stream is over."""
        return self._stream.specclient

    @property
    def response(self) -> Any:
        return self._stream.response

    def until_done(self) -> ChatStream:
        """Read what is left."""
        for _ in self._events:
            pass
        return self

    def get_final_completion(self) -> ChatCompletion:
        """The whole answer; reads what is left."""
        self.until_done()
        if not self._stream.completed:
            raise _incomplete()
        return self._accumulator.snapshot()

    def close(self) -> None:
        self._stream.close()


class ChatStreamManager:
    """`with … as stream`: the request is sent on entry, the stream closed on exit."""

    def __init__(self, start: Callable[[], Stream[ChatCompletionChunk]]) -> None:
        self._start = start
        self._open: ChatStream | None = None

    def __enter__(self) -> ChatStream:
        self._open = ChatStream(self._start())
        return self._open

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.close()


class AsyncChatStream:
    """The async twin of `ChatStream`."""

    def __init__(self, stream: AsyncStream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self._accumulator = Accumulator()
        self._events = self._read()

    async def _read(self) -> AsyncIterator[Event]:
        async for chunk in self._stream:
            for event in self._accumulator.feed(chunk):
                yield event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    @property
    def current_completion_snapshot(self) -> ChatCompletion:
        return self._accumulator.snapshot()

    @property
    def specclient(self) -> Report | None:
        """The report, once the stream is over."""
        return self._stream.specclient

    @property
    def response(self) -> Any:
        return self._stream.response

    async def until_done(self) -> AsyncChatStream:
        """Read what is left."""
        async for _ in self._events:
            pass
        return self

    async def get_final_completion(self) -> ChatCompletion:
        """The whole answer; reads what is left."""
        await self.until_done()
        if not self._stream.completed:
            raise _incomplete()
        return self._accumulator.snapshot()

    async def close(self) -> None:
        await self._stream.close()


class AsyncChatStreamManager:
    """The async twin of `ChatStreamManager`."""

    def __init__(self, start: Callable[[], Awaitable[AsyncStream[ChatCompletionChunk]]]) -> None:
        self._start = start
        self._open: AsyncChatStream | None = None

    async def __aenter__(self) -> AsyncChatStream:
        self._open = AsyncChatStream(await self._start())
        return self._open

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.close()
