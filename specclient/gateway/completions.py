"""`/v1/chat/completions` and `/v1/completions`: the client's request through the same flow as any other.

Beside the answer run two watchers: one sees the client leave, and then the answer's task is cancelled,
which closes the connection to the target or stops the engine at once; the other breaks long silences.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opentelemetry import context as otel_context
from pydantic_core import from_json
from starlette.types import Message, Receive, Scope, Send

from specclient import tracing
from specclient.config.serving import ServeSettings
from specclient.core import drive
from specclient.core.asked import fault_in_count, fault_in_messages
from specclient.core.flow import Flow
from specclient.economics.workload import checked
from specclient.errors import ConfigError, SpecclientError
from specclient.gateway.answers import Problem, json_response, problem_of, with_report
from specclient.gateway.guard import too_large
from specclient.gateway.infer import inferred_prediction
from specclient.gateway.metrics import Counted, Metrics
from specclient.gateway.reply import DONE, Reply
from specclient.gateway.targets import Targets, Unknown
from specclient.report import Reason, Report

WORKLOAD_HEADER = "x-specclient-workload"
"""The kind of call, from clients that have no other way to say it; it goes no further."""

log = logging.getLogger("specclient.gateway")


class Refused(Exception):
    """The request cannot be read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Completions:
    """The ASGI endpoint of one API kind, "chat" or "completions"."""

    def __init__(
        self,
        api: str,
        targets: Targets,
        settings: ServeSettings,
        options: tracing.TracingOptions,
        metrics: Metrics,
    ) -> None:
        self._api = api
        self._metrics = metrics
        self._targets = targets
        self._settings = settings
        self._tracing = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._metrics.serving(self._api) as counted:
            await self._serve(scope, receive, send, counted)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, counted: Counted) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host, port = scope.get("server") or (None, None)
        span = tracing.start_server(
            headers, method="POST", route=scope["path"], options=self._tracing, address=host, port=port
        )
        attached = None if span.context is None else otel_context.attach(span.context)
        reply = Reply(send, streamed=False, keep_alive_seconds=self._settings.keep_alive_seconds)
        outcome: tracing.CallOutcome = "completed"
        try:
            request = await self._request(receive)
            streamed = request.get("stream") is True
            reply = Reply(send, streamed=streamed, keep_alive_seconds=self._settings.keep_alive_seconds)
            flow = counted.flow = self._flow(request, headers)
            counted.target = flow.destinations[0].name
            answer = _Answer(flow, reply)
            if not await _until_gone(answer, receive):
                outcome = "closed_by_caller"
        except Refused as refused:
            await reply.fail(refused.problem)
        except SpecclientError as error:
            await reply.fail(problem_of(error))
        except asyncio.CancelledError as error:
            outcome = tracing.outcome_of(error)
            await reply.fail(Problem(503, "The server stops and cannot end this answer.", "server_error"))
            raise
        except BaseException as error:
            outcome = tracing.outcome_of(error)
            raise
        finally:
            if attached is not None:
                otel_context.detach(attached)
            span.finish(reply.status, outcome)
            counted.status, counted.closed = reply.status, outcome == "closed_by_caller"

    async def _request(self, receive: Receive) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                content = await self._body(receive)
        except TimeoutError:
            raise Refused(Problem(408, "The request did not come whole (serve.body_seconds).")) from None
        try:
            request = from_json(content)
        except ValueError as error:
            raise Refused(Problem(400, f"The request is not JSON: {_without_content(error)}.")) from None
        if not isinstance(request, dict):
            raise Refused(Problem(400, "The request is not a JSON object."))
        if request.get("stream") not in (None, True, False):
            raise Refused(Problem(400, "stream is true or false.", param="stream"))
        slips = {"n": fault_in_count("n", request.get("n"))}
        if self._api == "chat":
            slips["messages"] = fault_in_messages(request.get("messages"))
        for param, said in slips.items():
            if said is not None:
                raise Refused(Problem(400, said, param=param))
        return request

    async def _body(self, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        left = self._settings.max_body_bytes
        more = True
        while more:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(Problem(400, "The client left before its request was whole."))
            pieces.append(message.get("body", b""))
            left -= len(pieces[-1])
            if left < 0:
                raise Refused(too_large(self._settings))
            more = message.get("more_body", False)
        return b"".join(pieces)

    def _flow(self, request: dict[str, Any], headers: Mapping[str, str]) -> _GatewayFlow:
        try:
            served = self._targets.choose(request.pop("model", None))
        except Unknown as unknown:
            raise Refused(unknown.problem) from None
        if served.model is not None:
            request["model"] = served.model
        prediction, guess = None, None
        if served.target.infer_prediction and request.get("prediction") is None:
            prediction, guess = inferred_prediction(request)
        options = replace(
            served.client.defaults,
            adapter="gateway",
            idempotency_key=headers.get("idempotency-key"),
            workload=_workload(headers),
        )
        flow = _GatewayFlow(
            request,
            served.client.destinations,
            prediction=prediction,
            api=self._api,
            options=options,
            tracing_options=self._tracing,
        )
        flow.guess = guess
        return flow


_NOT_LOADED = Problem(
    400,
    "The embedded engine cannot answer with the model that was asked for; the server's log says why.",
    code="configuration",
)
"""The reason may name paths of this machine, which are the operator's to know."""


def _workload(headers: Mapping[str, str]) -> str | None:
    name = headers.get(WORKLOAD_HEADER) or None
    try:
        return checked(name)
    except ValueError as error:
        raise Refused(Problem(400, f"Header {WORKLOAD_HEADER}: {error}")) from None


class _GatewayFlow(Flow):
    """A flow that knows whether its prediction was inferred here."""

    guess: Reason | None = None
    """Why one was inferred or none; None where it was not tried."""

    def told(self, report: Report | None) -> Report | None:
        """The report, with the guess owned up to."""
        if report is None or self.guess is None:
            return report
        known = report.prediction
        return report.model_copy(
            update={"prediction": known.model_copy(update={"reasons": (self.guess, *known.reasons)})}
        )


class _Answer:
    """Runs a flow and writes what it gives."""

    def __init__(self, flow: _GatewayFlow, reply: Reply) -> None:
        self._flow = flow
        self.reply = reply

    async def run(self) -> None:
        try:
            await self._run()
        except ConfigError as error:
            log.error("a request failed at target %r: %s", self._flow.current.name, error)
            in_process = self._flow.current.target.provider == "local"
            await self.reply.fail(_NOT_LOADED if in_process else problem_of(error))
        except SpecclientError as error:
            error.report = self._flow.told(error.report)
            await self.reply.fail(problem_of(error))
        except Exception as error:
            # The text of an unknown error may hold content, so only its kind goes out.
            log.exception("a request failed inside specclient")
            await self.reply.fail(Problem(500, f"The server failed: {type(error).__name__}.", "server_error"))

    async def _run(self) -> None:
        flow = self._flow
        await drive.abegin(flow)
        if not flow.streamed:
            assert flow.result is not None
            await self.reply.whole(json_response(with_report(flow.result, flow.told(flow.report))))
            return
        chunks = await drive.achunks(flow)
        try:
            await self.reply.start_stream()
            async for value, report in chunks:
                await self.reply.write_event(
                    value if report is None else with_report(value, flow.told(report))
                )
        finally:
            flow.left_as = "closed_by_caller"
            await chunks.aclose()
        await self.reply.end_stream(DONE)


async def _until_gone(answer: _Answer, receive: Receive) -> bool:
    """Run the answer to its end, or until the client leaves; True for the former."""
    work = asyncio.create_task(answer.run())
    gone = asyncio.create_task(_gone(receive))
    breath = asyncio.create_task(answer.reply.keep_alive())
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        for task in (work, gone, breath):
            task.cancel()
        # Waited for, so that the target's connection is closed before this request is over.
        results = await asyncio.gather(work, gone, breath, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                log.debug("a request's task failed", exc_info=result)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without_content(error: ValueError) -> str:
    """A JSON error's message names a place and never quotes the text; its length is bounded all the same."""
    return str(error)[:100]
