"""Loading known text into a server's draft corpus around one exchange (SGLang's n-gram drafter).

A transport over the real one: it loads the plan's text before the request goes out and removes it when
the exchange is closed, on every way out. Calls that use the same text share one load. A server that will
not load it has refused the prediction: the call is then made again without it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from specclient.config.target import Timeout
from specclient.core.http import Send
from specclient.core.timeline import Timeline
from specclient.core.wire import Wire
from specclient.errors import BadRequestError
from specclient_providers.corpus import Corpora, CorpusCall

logger = logging.getLogger(__name__)

_REMOVAL = Timeout.of(5.0)
"""Limits of the call that removes a text: an answer that has come does not wait long for it."""


class _Loads:
    """What the sync and the async transport share: which calls to make, and what their answers mean."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.corpora = Corpora()

    @staticmethod
    def request(call: CorpusCall, send: Send) -> Send:
        """The call as a request to the same server with the same key."""
        parts = urlsplit(send.url)
        url = urlunsplit((parts.scheme, parts.netloc, call.path, "", ""))
        headers = {name: value for name, value in send.headers.items() if name.lower() != "idempotency-key"}
        return replace(
            send, url=url, headers=headers, body=json.dumps(call.body).encode(), streamed=False, plan=None
        )

    @staticmethod
    def wire(timeout: Timeout) -> Wire:
        """A stopwatch of its own, so that the call's figures do not hold the load."""
        timeline = Timeline()
        timeline.attempt_started()
        return Wire(timeout, timeline)

    @staticmethod
    def check(status: int, text: str) -> None:
        """Raises BadRequestError, in the form of a refused prediction, unless the text was loaded."""
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        if status == 200 and isinstance(answer, dict) and answer.get("success", True):
            return
        raise BadRequestError(
            f"The server did not load the known text as a draft corpus (it answered {status}).",
            status_code=400,
            body={"param": "prediction", "code": "corpus_not_loaded"},
        )


class CorpusTransport(_Loads):
    """See the module."""

    def open(self, send: Send, wire: Wire) -> Any:
        text = send.plan.corpus if send.plan is not None else None
        if text is None:
            return self.inner.open(send, wire)
        call = self.corpora.acquire(send.host, text)
        if call is not None:
            try:
                self.check(*self._made(call, send, wire.timeout))
            except BaseException:
                self.corpora.release(send.host, text)
                raise
        try:
            return CorpusExchange(self.inner.open(send, wire), self, send, text)
        except BaseException:
            self.release(send, text)
            raise

    def release(self, send: Send, text: str) -> None:
        """One user less; removes the text after the last. A failure is logged: the answer counts more."""
        call = self.corpora.release(send.host, text)
        if call is None:
            return
        try:
            self._made(call, send, _REMOVAL)
        except Exception as error:
            logger.warning("A draft corpus could not be removed from %s: %s", send.host, type(error).__name__)

    def _made(self, call: CorpusCall, send: Send, timeout: Timeout) -> tuple[int, str]:
        exchange = self.inner.open(self.request(call, send), self.wire(timeout))
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
        call = self.corpora.acquire(send.host, text)
        if call is not None:
            try:
                self.check(*await self._made(call, send, wire.timeout))
            except BaseException:
                self.corpora.release(send.host, text)
                raise
        try:
            return AsyncCorpusExchange(await self.inner.open(send, wire), self, send, text)
        except BaseException:
            await self.release(send, text)
            raise

    async def release(self, send: Send, text: str) -> None:
        """The async twin of `CorpusTransport.release`."""
        call = self.corpora.release(send.host, text)
        if call is None:
            return
        try:
            await self._made(call, send, _REMOVAL)
        except Exception as error:
            logger.warning("A draft corpus could not be removed from %s: %s", send.host, type(error).__name__)

    async def _made(self, call: CorpusCall, send: Send, timeout: Timeout) -> tuple[int, str]:
        exchange = await self.inner.open(self.request(call, send), self.wire(timeout))
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
        self._inner.close()
        if (text := self._taken()) is not None:
            self._transport.release(self._send, text)


class AsyncCorpusExchange(_Exchange):
    """See `exchange.Exchange`."""

    async def close(self) -> None:
        await self._inner.close()
        if (text := self._taken()) is not None:
            await self._transport.release(self._send, text)
