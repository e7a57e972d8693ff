"""The middleware: a transport around a transport. It changes nothing below it.

Proxies, pool limits, certificates and timeouts belong to the transport inside, which is kept.
"""

from __future__ import annotations

from typing import Any

from specclient.middleware.exchange import Steps, exchange
from specclient.middleware.family import Family
from specclient.middleware.settings import Settings


class _Around:
    def __init__(self, inner: Any, family: Family, settings: Settings) -> None:
        self.inner = inner
        self.family = family
        self.settings = settings

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "family", "settings"):  # not set yet: a copy or an unpickling in progress
            raise AttributeError(name)
        return getattr(self.inner, name)


class SyncTransport(_Around):
    """`handle_request` of either family."""

    def handle_request(self, request: Any) -> Any:
        return self.perform(exchange(request, self.family, self.settings, self.perform, is_async=False))

    def perform(self, steps: Steps) -> Any:
        """The response that the steps come to."""
        try:
            step = next(steps)
            while True:
                try:
                    result = step.run(self.inner)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value

    def __enter__(self) -> SyncTransport:
        self.inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.inner.__exit__(*error)

    def close(self) -> None:
        self.inner.close()


class AsyncTransport(_Around):
    """`handle_async_request` of either family."""

    async def handle_async_request(self, request: Any) -> Any:
        return await self.perform(exchange(request, self.family, self.settings, self.perform, is_async=True))

    async def perform(self, steps: Steps) -> Any:
        """The response that the steps come to."""
        try:
            step = next(steps)
            while True:
                try:
                    result = await step.arun(self.inner)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value

    async def __aenter__(self) -> AsyncTransport:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.inner.__aexit__(*error)

    async def aclose(self) -> None:
        await self.inner.aclose()
