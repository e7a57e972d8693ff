"""Loading known text into a server's draft corpus around one exchange (SGLang's n-gram drafter).

A transport over the real one: it loads the plan's text before the request goes out and removes it when
the exchange is closed, on every way out. Calls that use the same text share one load: the second waits
for the first's. A server that will not load it has refused the prediction: the call is then made again
without it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from specclient.config.target import Timeout
from specclient.core.http import timed_out
from specclient.core.send import Send
from specclient.core.timeline import Timeline
from specclient.core.wire import LimitReached, Wire
from specclient.errors import APIError, BadRequestError
from specclient_providers.corpus import Corpora, CorpusCall, Loading

logger = logging.getLogger(__name__)

_REMOVAL = Timeout.of(5.0)
"""Limits of the call that removes a text: an answer that has come does not wait long for it."""
_BUSY = "already in progress"
"""A server loads one corpus at a time, and says so in these words to the clients of other processes."""
_BUSY_WAITS = (0.1, 0.2, 0.4, 0.8)
"""Seconds between tries at a server that is loading somebody else's corpus."""


class _Loads:
    """What the sync and the async transport share: which calls to make, and what their answers mean."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.corpora = Corpora()

    @staticmethod
    def request(call: CorpusCall, send: Send) -> Send:
        """The call as a request to the same server, below whatever path it is served at, with the same
        key."""
        parts = urlsplit(send.url)
        root = parts.path.removesuffix(send.plan.path).removesuffix("/v1")
        url = urlunsplit((parts.scheme, parts.netloc, root + call.path, "", ""))
        headers = {name: value for name, value in send.headers.items() if name.lower() != "idempotency-key"}
        return replace(
            send, url=url, headers=headers, body=json.dumps(call.body).encode(), streamed=False, plan=None
        )

    @staticmethod
    def wire(timeout: Timeout, deadline: int | None = None) -> Wire:
        """A stopwatch of its own, so that the call's figures do not hold the load."""
        timeline = Timeline()
        timeline.attempt_started()
        return Wire(timeout, timeline, deadline)

    def settle(self, send: Send, text: str, status: int, answer: str) -> None:
        """Take note of what the server said to a load. Raises where it did not take the text, in the form
        of a refused prediction."""
        if _is_loaded(status, answer):
            self.corpora.loaded(send.host, text)
            return
        refusal = BadRequestError(
            f"The server did not load the known text as a draft corpus (it answered {status}).",
            status_code=400,
            body={"param": "prediction", "code": "corpus_not_loaded"},
        )
        self.corpora.failed(send.host, refusal)
        raise refusal

    @staticmethod
    def seconds_to_wait(send: Send, wire: Wire) -> float | None:
        """How long another call's load may be waited for: as long as for the answer itself."""
        try:
            return wire.read()
        except LimitReached as reached:
            raise timed_out(reached, send) from None

    @staticmethod
    def of_other(loading: Loading, text: str, refusal: Exception | None) -> None:
        """Raises the refusal that another call got for the same text."""
        if isinstance(refusal, APIError) and loading.text == text:
            raise BadRequestError(refusal.message, status_code=400, body=refusal.body)

    @staticmethod
    def log_left(send: Send, error: BaseException) -> None:
        """The answer counts more than a text that stays loaded."""
        logger.warning("A draft corpus could not be removed from %s: %s", send.host, type(error).__name__)


def _is_loaded(status: int, text: str) -> bool:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {}
    return status == 200 and isinstance(answer, dict) and bool(answer.get("success", True))


class CorpusTransport(_Loads):
    """See the module."""

    def open(self, send: Send, wire: Wire) -> Any:
        text = send.plan.corpus if send.plan is not None else None
        if text is None:
            return self.inner.open(send, wire)
        self._hold(send, wire, text)
        try:
            return CorpusExchange(self.inner.open(send, wire), self, send, text)
        except BaseException:
            self.release(send, text)
            raise

    def _hold(self, send: Send, wire: Wire, text: str) -> None:
        """Come back with the text loaded and this call counted as a user of it, or raise."""
        while (step := self.corpora.acquire(send.host, text)) is not None:
            if isinstance(step, CorpusCall):
                return self._load(step, send, wire, text)
            try:
                refusal = step.done.result(self.seconds_to_wait(send, wire))
            except concurrent.futures.TimeoutError:
                raise timed_out(wire.reached(), send) from None
            self.of_other(step, text, refusal)
        return None

    def _load(self, call: CorpusCall, send: Send, wire: Wire, text: str) -> None:
        try:
            status, answer = self._made(call, send, wire.timeout, wire.deadline)
            for wait in _BUSY_WAITS:
                if _BUSY not in answer:
                    break
                time.sleep(wait)
                status, answer = self._made(call, send, wire.timeout, wire.deadline)
        except BaseException:
            self._remove(self.corpora.failed(send.host), send)
            raise
        self.settle(send, text, status, answer)

    def release(self, send: Send, text: str) -> None:
        """One user less; removes the text after the last."""
        self._remove(self.corpora.release(send.host, text), send)

    def _remove(self, call: CorpusCall | None, send: Send) -> None:
        if call is None:
            return
        try:
            self._made(call, send, _REMOVAL)
        except Exception as error:
            self.log_left(send, error)

    def _made(
        self, call: CorpusCall, send: Send, timeout: Timeout, deadline: int | None = None
    ) -> tuple[int, str]:
        exchange = self.inner.open(self.request(call, send), self.wire(timeout, deadline))
        try:
            return exchange.status, exchange.read_text()
        finally:
            exchange.close()

    def close(self) -> None:
        self.inner.close()


class AsyncCorpusTransport(_Loads):
    """See the module."""

    async def open(self, send: Send, wire: Wire) -> Any:
        text = send.plan.corpus if send.plan is not None else None
        if text is None:
            return await self.inner.open(send, wire)
        await self._hold(send, wire, text)
        try:
            return AsyncCorpusExchange(await self.inner.open(send, wire), self, send, text)
        except BaseException:
            await self.release(send, text)
            raise

    async def _hold(self, send: Send, wire: Wire, text: str) -> None:
        """The async twin of `CorpusTransport._hold`. Leaving while another call loads leaves that load
        alone."""
        while (step := self.corpora.acquire(send.host, text)) is not None:
            if isinstance(step, CorpusCall):
                return await self._load(step, send, wire, text)
            try:
                async with asyncio.timeout(self.seconds_to_wait(send, wire)):
                    refusal = await asyncio.shield(asyncio.wrap_future(step.done))
            except TimeoutError:
                raise timed_out(wire.reached(), send) from None
            self.of_other(step, text, refusal)
        return None

    async def _load(self, call: CorpusCall, send: Send, wire: Wire, text: str) -> None:
        try:
            status, answer = await self._made(call, send, wire.timeout, wire.deadline)
            for wait in _BUSY_WAITS:
                if _BUSY not in answer:
                    break
                await asyncio.sleep(wait)
                status, answer = await self._made(call, send, wire.timeout, wire.deadline)
        except BaseException:
            await self._remove(self.corpora.failed(send.host), send)
            raise
        self.settle(send, text, status, answer)

    async def release(self, send: Send, text: str) -> None:
        """The async twin of `CorpusTransport.release`."""
        await self._remove(self.corpora.release(send.host, text), send)

    async def _remove(self, call: CorpusCall | None, send: Send) -> None:
        """A removal is carried through even when the caller is cancelled meanwhile."""
        if call is None:
            return
        removal = asyncio.ensure_future(self._removed(call, send))
        try:
            await asyncio.shield(removal)
        except asyncio.CancelledError:
            await asyncio.wait((removal,))
            raise

    async def _removed(self, call: CorpusCall, send: Send) -> None:
        try:
            await self._made(call, send, _REMOVAL)
        except Exception as error:
            self.log_left(send, error)

    async def _made(
        self, call: CorpusCall, send: Send, timeout: Timeout, deadline: int | None = None
    ) -> tuple[int, str]:
        exchange = await self.inner.open(self.request(call, send), self.wire(timeout, deadline))
        try:
            return exchange.status, await exchange.read_text()
        finally:
            await exchange.close()

    async def close(self) -> None:
        await self.inner.close()


class _Exchange:
    """The real exchange, with the corpus to give back when it is closed."""

    def __init__(self, inner: Any, transport: Any, send: Send, text: str) -> None:
        self._inner = inner
        self._transport = transport
        self._send = send
        self._text: str | None = text

    @property
    def status(self) -> int:
        return int(self._inner.status)

    @property
    def headers(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self._inner.headers
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _taken(self) -> str | None:
        """The text to give back, once."""
        text, self._text = self._text, None
        return text


class CorpusExchange(_Exchange):
    """See `exchange.Exchange`."""

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            if (text := self._taken()) is not None:
                self._transport.release(self._send, text)


class AsyncCorpusExchange(_Exchange):
    """See `exchange.Exchange`."""

    async def close(self) -> None:
        try:
            await self._inner.close()
        finally:
            if (text := self._taken()) is not None:
                await self._transport.release(self._send, text)
