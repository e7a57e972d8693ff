"""`client.chat.completions`, sync and async."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack, overload

from specclient.client.params import NOT_GIVEN, ChatParams, Messages, NotGiven

if TYPE_CHECKING:
    from specclient.client.base import ClientBase
    from specclient.client.events import AsyncChatStreamManager, ChatStreamManager
    from specclient.client.stream import AsyncStream, Stream
    from specclient.client.streamed_response import AsyncStreamedResponseManager, StreamedResponseManager
    from specclient.prediction import PredictionLike
    from specclient.types import ChatCompletion, ChatCompletionChunk

Headers = Mapping[str, str | None] | None
Given = NotGiven | None
"""None and "not given" alike mean: no prediction, no stream, the target's own model."""


_STORED = "what OpenAI stores is read and changed with the official SDK"
_ELSEWHERE = {
    "parse": "parse a schema's answer with the official SDK, wrapped by specclient.wrap()",
    **dict.fromkeys(("retrieve", "update", "list", "delete", "messages"), _STORED),
}


def not_here(resource: object, name: str) -> AttributeError:
    """The error for a name that a resource does not have, with what to use instead where there is one."""
    if name in _ELSEWHERE:
        return AttributeError(f"{type(resource).__name__} has no {name!r}: {_ELSEWHERE[name]}.")
    return AttributeError(f"{type(resource).__name__!r} object has no attribute {name!r}")


class Completions:
    """The chat completions API."""

    def __getattr__(self, name: str) -> NoReturn:
        raise not_here(self, name)

    def __init__(self, client: ClientBase) -> None:
        self._client = client

    @overload
    def create(
        self,
        *,
        messages: Messages,
        model: str | Given = ...,
        prediction: PredictionLike | Given = ...,
        stream: Literal[False] | Given = ...,
        extra_headers: Headers = ...,
        extra_query: Mapping[str, Any] | None = ...,
        extra_body: Mapping[str, Any] | None = ...,
        timeout: Any = ...,
        max_retries: int | None = ...,
        idempotency_key: str | None = ...,
        workload: str | None = ...,
        **params: Unpack[ChatParams],
    ) -> ChatCompletion: ...

    @overload
    def create(
        self,
        *,
        messages: Messages,
        stream: Literal[True],
        model: str | Given = ...,
        prediction: PredictionLike | Given = ...,
        extra_headers: Headers = ...,
        extra_query: Mapping[str, Any] | None = ...,
        extra_body: Mapping[str, Any] | None = ...,
        timeout: Any = ...,
        max_retries: int | None = ...,
        idempotency_key: str | None = ...,
        workload: str | None = ...,
        **params: Unpack[ChatParams],
    ) -> Stream[ChatCompletionChunk]: ...

    @overload
    def create(
        self,
        *,
        messages: Messages,
        stream: bool,
        model: str | Given = ...,
        prediction: PredictionLike | Given = ...,
        extra_headers: Headers = ...,
        extra_query: Mapping[str, Any] | None = ...,
        extra_body: Mapping[str, Any] | None = ...,
        timeout: Any = ...,
        max_retries: int | None = ...,
        idempotency_key: str | None = ...,
        workload: str | None = ...,
        **params: Unpack[ChatParams],
    ) -> ChatCompletion | Stream[ChatCompletionChunk]: ...

    def create(
        self,
        *,
        messages: Messages,
        model: str | Given = NOT_GIVEN,
        prediction: PredictionLike | Given = NOT_GIVEN,
        stream: bool | Given = NOT_GIVEN,
        **options: Any,
    ) -> ChatCompletion | Stream[ChatCompletionChunk]:
        """Ask for an answer; with `stream=True`, for its chunks.

        `prediction` is known text that should reappear: a string, OpenAI's object, a
        `specclient.Prediction`, or a callable that is called once. `model` may be left to the target.
        `timeout` is a number of seconds, a `specclient.Timeout` or None (no limits). `workload` names the
        kind of call, within which predictions are weighed. The answer's `specclient`, and that of a
        stream's last chunk, is the `Report`.
        """
        answer: ChatCompletion | Stream[ChatCompletionChunk] = self._create(
            messages=messages, model=model, prediction=prediction, stream=stream, **options
        )
        return answer

    def _create(
        self, *, raw: bool = False, prediction: Any = None, stream: Any = None, **options: Any
    ) -> Any:
        from specclient.client.calls import send

        return send(self._client, "chat", raw=raw, prediction=prediction, stream=stream, **options)

    def stream(self, *, messages: Messages, **options: Any) -> ChatStreamManager:
        """A context manager over a stream's events; see `specclient.client.events`."""
        from specclient.client.events import ChatStreamManager

        return ChatStreamManager(lambda: self._create(messages=messages, **options, stream=True))

    @cached_property
    def with_raw_response(self) -> RawCompletions:
        """The same methods, answering with headers and status."""
        return RawCompletions(self._client)

    @cached_property
    def with_streaming_response(self) -> StreamingCompletions:
        """`create` inside a `with` block: headers and status at once, the body as it is read."""
        return StreamingCompletions(self)


class RawCompletions(Completions):
    """`create` answers with a `RawResponse`; its `parse()` is the answer."""

    def _create(self, **options: Any) -> Any:
        return super()._create(**{**options, "raw": True})


class StreamingCompletions:
    """`create` as a context manager over a `StreamedResponse`."""

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    def create(self, **options: Any) -> StreamedResponseManager:
        from specclient.client.streamed_response import StreamedResponseManager

        return StreamedResponseManager(lambda: self._completions.with_raw_response.create(**options))


class AsyncCompletions:
    """The async twin of `Completions`."""

    def __getattr__(self, name: str) -> NoReturn:
        raise not_here(self, name)

    def __init__(self, client: ClientBase) -> None:
        self._client = client

    @overload
    async def create(
        self,
        *,
        messages: Messages,
        model: str | Given = ...,
        prediction: PredictionLike | Given = ...,
        stream: Literal[False] | Given = ...,
        extra_headers: Headers = ...,
        extra_query: Mapping[str, Any] | None = ...,
        extra_body: Mapping[str, Any] | None = ...,
        timeout: Any = ...,
        max_retries: int | None = ...,
        idempotency_key: str | None = ...,
        workload: str | None = ...,
        **params: Unpack[ChatParams],
    ) -> ChatCompletion: ...

    @overload
    async def create(
        self,
        *,
        messages: Messages,
        stream: Literal[True],
        model: str | Given = ...,
        prediction: PredictionLike | Given = ...,
        extra_headers: Headers = ...,
        extra_query: Mapping[str, Any] | None = ...,
        extra_body: Mapping[str, Any] | None = ...,
        timeout: Any = ...,
        max_retries: int | None = ...,
        idempotency_key: str | None = ...,
        workload: str | None = ...,
        **params: Unpack[ChatParams],
    ) -> AsyncStream[ChatCompletionChunk]: ...

    @overload
    async def create(
        self,
        *,
        messages: Messages,
        stream: bool,
        model: str | Given = ...,
        prediction: PredictionLike | Given = ...,
        extra_headers: Headers = ...,
        extra_query: Mapping[str, Any] | None = ...,
        extra_body: Mapping[str, Any] | None = ...,
        timeout: Any = ...,
        max_retries: int | None = ...,
        idempotency_key: str | None = ...,
        workload: str | None = ...,
        **params: Unpack[ChatParams],
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]: ...

    async def create(
        self,
        *,
        messages: Messages,
        model: str | Given = NOT_GIVEN,
        prediction: PredictionLike | Given = NOT_GIVEN,
        stream: bool | Given = NOT_GIVEN,
        **options: Any,
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]:
        """See `Completions.create`."""
        answer: ChatCompletion | AsyncStream[ChatCompletionChunk] = await self._create(
            messages=messages, model=model, prediction=prediction, stream=stream, **options
        )
        return answer

    async def _create(
        self, *, raw: bool = False, prediction: Any = None, stream: Any = None, **options: Any
    ) -> Any:
        from specclient.client.calls import asend

        return await asend(self._client, "chat", raw=raw, prediction=prediction, stream=stream, **options)

    def stream(self, *, messages: Messages, **options: Any) -> AsyncChatStreamManager:
        """See `Completions.stream`; `async with`, `async for`."""
        from specclient.client.events import AsyncChatStreamManager

        return AsyncChatStreamManager(lambda: self._create(messages=messages, **options, stream=True))

    @cached_property
    def with_raw_response(self) -> AsyncRawCompletions:
        """The same methods, answering with headers and status."""
        return AsyncRawCompletions(self._client)

    @cached_property
    def with_streaming_response(self) -> AsyncStreamingCompletions:
        """See `Completions.with_streaming_response`; `async with`."""
        return AsyncStreamingCompletions(self)


class AsyncRawCompletions(AsyncCompletions):
    """`create` answers with a `RawResponse`; its `parse()` is the answer."""

    async def _create(self, **options: Any) -> Any:
        return await super()._create(**{**options, "raw": True})


class AsyncStreamingCompletions:
    """The async twin of `StreamingCompletions`."""

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    def create(self, **options: Any) -> AsyncStreamedResponseManager:
        from specclient.client.streamed_response import AsyncStreamedResponseManager

        return AsyncStreamedResponseManager(lambda: self._completions.with_raw_response.create(**options))


class Chat:
    """`client.chat`."""

    def __init__(self, client: ClientBase) -> None:
        self.completions = Completions(client)


class AsyncChat:
    """`client.chat` of the async client."""

    def __init__(self, client: ClientBase) -> None:
        self.completions = AsyncCompletions(client)
