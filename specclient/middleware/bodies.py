"""Response bodies as an HTTP client reads them: a stream that is watched, and bytes that are at hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

from specclient.core.pool_calls import POOL_CALLS, closed_when_dropped
from specclient.middleware.drain import adrain, can_drain, drain
from specclient.middleware.relay import AskAgain


class Watch(Protocol):
    """What a body tells of its life, and what turns its blocks into those that the SDK gets."""

    drained: bool
    """True when the last event has come, so that the rest of the body is only framing."""

    def feed(self, block: bytes) -> bytes: ...
    def end(self) -> bytes: ...
    def failed(self, error: BaseException) -> bytes: ...
    def closed(self) -> None: ...


class _Watched:
    """State shared by both kinds. The body is its own iterator, so that it can be resumed after a pause."""

    def __init__(
        self,
        blocks: Any,
        close: Callable[[], Any],
        watch: Watch,
        extensions: dict[str, Any],
        again: Callable[[], Any],
    ) -> None:
        self._blocks = blocks
        self._close = close
        self._watch = watch
        self._extensions = extensions
        self._again = again
        self._ended = False
        self._closed = False
        self._second: Any = None
        self._error: Exception | None = None

    def _broken_off(self, error: BaseException) -> bytes:
        """What came before the error and has not been passed on: it goes first, and the error follows."""
        self._ended = True
        rest = self._watch.failed(error)
        if rest and isinstance(error, Exception):
            self._error = error.with_traceback(None)  # which leads back here: a circle
            return rest
        raise error

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _go_on_with(self, response: Any, refusal: bytes) -> bytes:
        """Be the body of another response from here on; gives what is left to say of the first one.

        The SDK has the head of the first already: where the second is no stream, the refusal is the answer.
        """
        self._second = response  # held, because its own body counts as left once nothing holds it
        other = response.stream
        if not isinstance(other, _Watched):
            return refusal
        self._ended = False
        self._blocks, self._close, self._watch = other._blocks, other._close, other._watch
        self._extensions = other._extensions
        return b""


class SyncBody(_Watched):
    """The blocks of a response, seen by a watch on their way."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._dropped = closed_when_dropped(self, self._close, self._blocks)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while not self._ended:
            if self._watch.drained and can_drain(self._extensions):
                self._ended = True
                with POOL_CALLS:
                    rest = drain(self._blocks, self._extensions)
                if out := self._watch.feed(rest) + self._watch.end():
                    return out
                break
            try:
                with POOL_CALLS:
                    block = next(self._blocks, None)
            except BaseException as error:
                return self._broken_off(error)
            if block is None:
                self._ended = True
                out = self._watch.end()
            else:
                try:
                    out = self._watch.feed(block)
                except AskAgain as refused:
                    self._ended = True
                    out = self._ask_again(refused.event)
            if out:
                return out
        self._raise_error()
        raise StopIteration

    def _ask_again(self, refusal: bytes) -> bytes:
        with POOL_CALLS:
            drain(self._blocks, self._extensions)
            self._close()
        self._dropped.detach()
        response = self._again()
        self._close = response.close
        rest = self._go_on_with(response, refusal)
        if isinstance(response.stream, SyncBody):
            response.stream._dropped.detach()
        self._dropped = closed_when_dropped(self, self._close, self._blocks)
        return rest

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._watch.closed()
        if POOL_CALLS.busy:
            self._dropped()
            return
        self._dropped.detach()
        with POOL_CALLS:
            try:
                if self._watch.drained and not self._ended:
                    drain(self._blocks, self._extensions)
            finally:
                self._close()


class AsyncBody(_Watched):
    """`SyncBody` for an async client."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._ended:
            if self._watch.drained and can_drain(self._extensions, is_async=True):
                self._ended = True
                rest = await adrain(self._blocks, self._extensions)
                if out := self._watch.feed(rest) + self._watch.end():
                    return out
                break
            try:
                block = await anext(self._blocks, None)
            except BaseException as error:
                return self._broken_off(error)
            if block is None:
                self._ended = True
                out = self._watch.end()
            else:
                try:
                    out = self._watch.feed(block)
                except AskAgain as refused:
                    self._ended = True
                    out = await self._ask_again(refused.event)
            if out:
                return out
        self._raise_error()
        raise StopAsyncIteration

    async def _ask_again(self, refusal: bytes) -> bytes:
        await adrain(self._blocks, self._extensions)
        await self._close()
        response = await self._again()
        self._close = response.aclose
        return self._go_on_with(response, refusal)

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._watch.closed()
        try:
            if self._watch.drained and not self._ended:
                await adrain(self._blocks, self._extensions)
        finally:
            await self._close()


class SyncBytes:
    """A whole body. Not the HTTP library's own: that one counts as read, and leaves `elapsed` unset."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        pass


class AsyncBytes:
    """`SyncBytes` for an async client."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content

    async def aclose(self) -> None:
        pass
