"""Answers from the engine in this process, in the dress of an HTTP response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specclient.config import Config, Target, Timeout, resolve_target
from specclient.core import drive
from specclient.core.destination import CallOptions, Destination
from specclient.core.flow import Flow
from specclient.core.local import AsyncLocalTransport, LocalTransport
from specclient.errors import APIError, APIStatusError, ConfigError
from specclient.middleware import context
from specclient.middleware.endpoints import LOCAL
from specclient.middleware.family import Family
from specclient.middleware.late import LateReport
from specclient.middleware.relay import compact
from specclient.middleware.settings import Settings
from specclient.prediction import Prediction
from specclient.report import Reason, Report

Item = tuple[dict[str, Any], Report | None]


@dataclass(frozen=True, slots=True)
class Local:
    """A step that needs no network: a request of OpenAI's shape is answered by the engine.

    `reasons` say why it comes here when the SDK meant to ask another endpoint; its model is then that
    endpoint's, and the configured local model answers.
    """

    asked: Mapping[str, Any]
    prediction: Prediction | None
    api: str
    settings: Settings
    family: Family
    timeout: float | None
    reasons: tuple[Reason, ...] = ()

    def run(self, _transport: Any) -> Any:
        try:
            flow = self._flow(LocalTransport)
            drive.begin(flow)
        except (APIError, ConfigError) as error:
            return self._response(*_told(error), self.family.bytes_body)
        if not flow.streamed:
            return self._response(200, _finished(flow), self.family.bytes_body)
        return self._streamed(self.family.local_body(drive.chunks(flow), flow))

    async def arun(self, _transport: Any) -> Any:
        try:
            flow = self._flow(AsyncLocalTransport)
            await drive.abegin(flow)
        except (APIError, ConfigError) as error:
            return self._response(*_told(error), self.family.async_bytes_body)
        if not flow.streamed:
            return self._response(200, _finished(flow), self.family.async_bytes_body)
        return self._streamed(self.family.async_local_body(await drive.achunks(flow), flow))

    def _flow(self, transport: type[LocalTransport]) -> Flow:
        config = self.settings.config
        target = self._target(config)
        request = {key: value for key, value in self.asked.items() if key != "model" or not self.reasons}
        flow = Flow(
            request,
            [
                Destination(
                    target, config, transport(target.model, target.engine, engine=self.settings.engine)
                )
            ],
            prediction=self.prediction,
            api=self.api,
            options=CallOptions(timeout=Timeout.of(self.timeout), adapter="wrap"),
            tracing_options=self.settings.tracing,
        )
        flow.ledger.notes += self.reasons
        return flow

    def _target(self, config: Config) -> Target:
        options = self.settings.options
        if options.target is not None and options.target.provider == LOCAL:
            return options.target
        fields = {**options.engine, "economics": options.economics, "prices": options.prices}
        if options.target is not None:
            fields |= {"economics": None, "prices": None}  # they are the other target's
        if LOCAL in config.targets:
            return resolve_target(LOCAL, config=config, **fields)
        return resolve_target(provider=LOCAL, config=config, **fields)

    def _response(self, status: int, body: Mapping[str, Any], kind: Any) -> Any:
        content = compact(body)
        headers = {"content-type": "application/json", "content-length": str(len(content))}
        if status >= 400:
            headers["x-should-retry"] = "false"  # the engine is no network: the same would come again
        return self.family.module.Response(status, headers=headers, stream=kind(content))

    def _streamed(self, body: Any) -> Any:
        return self.family.module.Response(200, headers={"content-type": "text/event-stream"}, stream=body)


def _finished(flow: Flow) -> dict[str, Any]:
    assert flow.result is not None
    return _with_report(flow.result, flow.report, context.current_block())


def _with_report(value: dict[str, Any], report: Report | None, block: context.Block | None) -> dict[str, Any]:
    if report is None:
        return value
    late = LateReport.of(report)
    context.remember(late, value.get("id"), block)
    return {**value, context.KEY: late.given_away()}


def _told(error: APIError | ConfigError) -> tuple[int, dict[str, Any]]:
    """An error in OpenAI's shape."""
    if isinstance(error, ConfigError):
        return 400, _error(str(error), "invalid_request_error", "configuration", None)
    status = error.status_code if isinstance(error, APIStatusError) else 500
    kind = "invalid_request_error" if status < 500 else "server_error"
    return status, _error(error.message, error.type or kind, error.code, error.param)


def _error(message: str, kind: str, code: str | None, param: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _event(item: Item, block: context.Block | None) -> bytes:
    return b"data: " + compact(_with_report(*item, block)) + b"\n\n"


class SyncLocalBody:
    """A stream of the engine's chunks as server-sent events."""

    def __init__(self, chunks: Generator[Item], flow: Flow) -> None:
        self._chunks = chunks
        self._flow = flow
        self._block = context.current_block()

    def __iter__(self) -> Iterator[bytes]:
        try:
            for item in self._chunks:
                yield _event(item, self._block)
        except APIError as error:
            yield b"data: " + compact(_told(error)[1]) + b"\n\n"
        else:
            yield b"data: [DONE]\n\n"

    def close(self) -> None:
        drive.close(self._flow, self._chunks)


class AsyncLocalBody:
    """`SyncLocalBody` for an async client."""

    def __init__(self, chunks: AsyncGenerator[Item], flow: Flow) -> None:
        self._chunks = chunks
        self._flow = flow
        self._block = context.current_block()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for item in self._chunks:
                yield _event(item, self._block)
        except APIError as error:
            yield b"data: " + compact(_told(error)[1]) + b"\n\n"
        else:
            yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        await drive.aclose(self._flow, self._chunks)
