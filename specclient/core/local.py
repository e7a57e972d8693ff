"""The embedded engine as a target: OpenAI's request in, OpenAI's chunks out, no HTTP in between.

What the engine cannot do is refused in one sentence, never left out silently. Two defaults differ from a
hosted API, and on purpose: without a `temperature` the engine is greedy (0), because regenerated text
should be the same text, and without a limit an answer may fill the context.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from specclient.core import engines
from specclient.core.exchange import DONE, ReadingStopped
from specclient.core.local_request import LocalRequest, read_request
from specclient.core.send import Send
from specclient.core.wire import LimitReached, Wire
from specclient.errors import APIConnectionError, APITimeoutError

if TYPE_CHECKING:
    from specclient_engine import Handle, Step

DEFAULT_MODEL = "qwen2.5-coder-0.5b"


class LocalTransport:
    """Opens exchanges with the engine. Engines are shared by the process and stay loaded."""

    def __init__(self, model: str | None, options: Mapping[str, Any], *, engine: Any = None) -> None:
        self._model = model or DEFAULT_MODEL
        self._options = dict(options)
        self._given = engine
        if engine is not None:
            engines.used_here()

    def engine(self, model: str | None) -> Any:
        """The engine for a model, loaded at first use. Raises ConfigError where it cannot be."""
        engines.used_here()
        return self._given or engines.shared(model or self._model, self._options)

    def open(self, send: Send, wire: Wire) -> LocalExchange:
        """Load the engine if need be, and queue the request."""
        return LocalExchange(*self._submit(send, wire), send, wire)

    def _submit(self, send: Send, wire: Wire) -> tuple[LocalRequest, Handle]:
        engines.used_here()
        plan = send.plan
        there = self._given or engines.is_loaded(plan.facts.model or self._model, self._options)
        engine = self.engine(plan.facts.model)
        if not there:
            wire.timeline.loaded()
        request = read_request(plan, engine)
        with engines.translated():
            return request, engine.submit(request.generation)

    def close(self) -> None:
        """Engines belong to the process: nothing is closed."""


class AsyncLocalTransport(LocalTransport):
    """The async twin: loading and tokenising happen in a thread, so that the event loop goes on."""

    async def open(self, send: Send, wire: Wire) -> AsyncLocalExchange:  # type: ignore[override]
        return AsyncLocalExchange(*await asyncio.to_thread(self._submit, send, wire), send, wire)

    async def close(self) -> None:  # type: ignore[override]
        """Engines belong to the process: nothing is closed."""


class _Local:
    """What both exchanges share: steps in, OpenAI objects out."""

    status = 200

    def __init__(self, request: LocalRequest, handle: Handle, send: Send, wire: Wire) -> None:
        self.headers: Mapping[str, str] = {}
        self.wire = wire
        self.stats: Any = None
        self.first_tokens: int | None = None
        """Tokens in the first content: one verification step may bring several."""
        self._request = request
        self._handle = handle
        self._streamed = send.streamed
        self._id = f"{'chatcmpl' if request.chat else 'cmpl'}-{uuid.uuid4().hex[:24]}"
        self._created = int(time.time())
        self._pieces: list[str] = []
        self._logprobs: list[Any] = []
        self._started = False
        self._ended = False
        self._stopped = False
        wire.timeline.sent()

    def _taken(self, step: Step) -> list[Any]:
        """The objects that one step makes."""
        if step.finish_reason is not None:
            self._ended = True
            self.stats = self._handle.stats
        if step.finish_reason == "cancelled":
            raise APIConnectionError("The embedded engine was told to stop before the answer was whole.")
        if step.text and self.first_tokens is None:
            self.first_tokens = len(step.token_ids)
        logprobs = self._request.logprobs_of(step)
        if not self._streamed:
            self._pieces.append(step.text)
            self._logprobs += logprobs or ()
            self.wire.touch()
            return [self._whole(step.finish_reason)] if self._ended and step.finish_reason else []
        objects: list[Any] = []
        if not self._started:
            self._started = True
            if self._request.chat:
                objects.append(self._chunk({"role": "assistant", "content": ""}, None, None))
        if step.text or logprobs:
            objects.append(self._chunk({"content": step.text}, None, logprobs))
        if step.finish_reason is not None:
            objects.append(self._chunk({}, step.finish_reason, None))
            if self._request.include_usage:
                objects.append({**self._head(), "choices": [], "usage": self._usage()})
            objects.append(DONE)
        return objects

    def _head(self) -> dict[str, Any]:
        kind = "chat.completion" if self._request.chat else "text_completion"
        if self._streamed and self._request.chat:
            kind += ".chunk"
        return {"id": self._id, "object": kind, "created": self._created, "model": self._request.model}

    def _chunk(self, delta: dict[str, Any], finish: str | None, logprobs: list[Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {"index": 0}
        body |= {"delta": delta} if self._request.chat else {"text": delta.get("content", "")}
        body |= {"logprobs": {"content": logprobs} if logprobs else None, "finish_reason": finish}
        return {**self._head(), "choices": [body]}

    def _whole(self, finish: str) -> dict[str, Any]:
        text = "".join(self._pieces)
        body: dict[str, Any] = {"index": 0, "finish_reason": finish}
        body |= {"message": {"role": "assistant", "content": text}} if self._request.chat else {"text": text}
        body["logprobs"] = {"content": self._logprobs} if self._logprobs else None
        return {**self._head(), "choices": [body], "usage": self._usage()}

    def _usage(self) -> dict[str, Any]:
        stats = self.stats
        tried, accepted = stats.by_source.get("prediction", (0, 0))
        return {
            "prompt_tokens": stats.prompt_tokens,
            "completion_tokens": stats.completion_tokens,
            "total_tokens": stats.prompt_tokens + stats.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
            "completion_tokens_details": {
                "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": tried - accepted,
            },
        }

    def stop(self) -> None:
        """See `exchange.Exchange`."""
        self._stopped = True
        self._handle.cancel()

    def _cancel(self) -> None:
        if not self._ended:
            self._ended = True
            self._handle.cancel()


class LocalExchange(_Local):
    """See `exchange.Exchange`."""

    def read(self) -> list[Any] | None:
        if self._ended:
            return None
        try:
            with engines.translated():
                step = self._handle.next(self.wire.read())
        except (TimeoutError, LimitReached):
            self._cancel()
            raise _too_slow(self.wire) from None
        if self._stopped:
            raise ReadingStopped
        return None if step is None else self._taken(step)

    def read_text(self) -> str:
        return ""

    def drain(self) -> None:
        """There is no connection to save."""

    def close(self) -> None:
        self._cancel()


class AsyncLocalExchange(_Local):
    """See `exchange.AsyncExchange`."""

    async def read(self) -> list[Any] | None:
        if self._ended:
            return None
        try:
            with engines.translated():
                async with asyncio.timeout(self.wire.read()):
                    step = await anext(self._handle, None)
        except (TimeoutError, LimitReached):
            self._cancel()
            raise _too_slow(self.wire) from None
        if self._stopped:
            raise ReadingStopped
        return None if step is None else self._taken(step)

    async def read_text(self) -> str:
        return ""

    async def drain(self) -> None:
        """There is no connection to save."""

    async def close(self) -> None:
        self._cancel()


def _too_slow(wire: Wire) -> APITimeoutError:
    reached = wire.reached()
    return APITimeoutError(
        f"No answer from the embedded engine within the limit {reached.limit} ({reached.seconds:g} s).",
        limit=reached.limit,
    )
