"""The two drivers of a `Flow`: they perform what it asks for, one blocking, one awaiting.

flow = Flow(request, destinations)
drive.begin(flow)                    # plain: flow.result is there; stream: its headers came
for chunk in drive.chunks(flow): …   # a stream's objects, the last one with the report
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import nullcontext
from types import AsyncGeneratorType
from typing import Any, TypeVar, overload

from specclient.core.alike import Piece, filled
from specclient.core.exchange import ReadingStopped
from specclient.core.fetch import Fetch
from specclient.core.flow import Flow
from specclient.core.ops import Close, Op, Open, Read, Ready, Sleep
from specclient.errors import APIConnectionError, APIError
from specclient.report import Report


def begin(flow: Flow | Fetch) -> None:
    """Run until the answer is whole, or until a stream's headers came."""
    _advance(flow, to_headers=True)


def _advance(flow: Flow | Fetch, *, to_headers: bool = False) -> None:
    steps, result, error = flow.steps, None, None
    try:
        while True:
            op = steps.send(result) if error is None else steps.throw(error)
            result, error = None, None
            if isinstance(op, Ready):
                if to_headers:
                    return
                continue
            try:
                result = _perform(op)
            except BaseException as raised:
                error = raised
    except StopIteration:
        return


def _perform(op: Op) -> Any:
    if isinstance(op, Read):
        exchange: Any = op.exchange
        return exchange.read_text() if op.text else exchange.read()
    if isinstance(op, Open):
        with op.call.current() if op.call is not None else nullcontext():
            return op.destination.transport.open(op.send, op.wire)
    if isinstance(op, Close):
        return op.exchange.close()
    if isinstance(op, Sleep):
        return time.sleep(op.seconds)
    raise AssertionError(op)


T = TypeVar("T")
Make = Callable[[dict[str, Any] | Piece, Report | None], T]
"""What becomes of an object and, with the last one, of the report."""


Pair = tuple[dict[str, Any], Report | None]


def _pair(obj: dict[str, Any] | Piece, report: Report | None) -> Pair:
    return filled(obj) if isinstance(obj, tuple) else obj, report


@overload
def chunks(flow: Flow) -> Generator[Pair]: ...


@overload
def chunks(flow: Flow, make: Make[T]) -> Generator[T]: ...


def chunks(flow: Flow, make: Make[Any] = _pair) -> Generator[Any]:
    """The objects of a stream that has begun, as `make` makes them; the last one comes with the report.

    Leaving early (before the first object too), an error and garbage collection all end the call once
    and close the exchange.
    """
    given = _chunks(flow, make)
    next(given)  # a generator that was never begun has no way out, so nothing would be closed
    return given


def _chunks(flow: Flow, make: Make[T]) -> Generator[T]:
    out: dict[str, Any] | Piece | None
    try:
        yield make({}, None)
        while True:
            try:
                _advance(flow)
                if flow.left_as == "closed_by_caller":  # between two tries
                    raise ReadingStopped
                answer, read = flow.begun
                for out in flow.held:
                    yield make(out, None)
                event = answer.event
                for obj in flow.rest:
                    out = event(obj)
                    if out is not None:
                        yield make(out, None)
                while not answer.over:
                    try:
                        objects = read()
                    except APIConnectionError:
                        if not flow.may_end():
                            raise
                        break
                    if objects is None:
                        break
                    for obj in objects:
                        out = event(obj)
                        if out is not None:
                            yield make(out, None)
                last = answer.end()
                yield make(last, flow.complete())
                return
            except APIError as error:
                if not flow.again(error):
                    raise
    except GeneratorExit as left:
        flow.interrupted(None, flow.left_as)
        if not isinstance(left, ReadingStopped):
            raise
    except BaseException as error:
        flow.interrupted(error)
        raise
    finally:
        flow.steps.close()
        _leave(flow)


def close(flow: Flow, given: Generator[Any]) -> None:
    """End a stream early, from another thread than its reader's too: the reader then is at the end."""
    flow.left_as = "closed_by_caller"
    try:
        given.close()
    except ValueError:  # it is being read
        if flow.exchange is not None:
            flow.exchange.stop()


def _leave(flow: Flow) -> None:
    exchange, answer = flow.exchange, flow.answer
    if exchange is None:
        return
    if answer is not None and answer.done:
        exchange.drain()
    exchange.close()


async def abegin(flow: Flow | Fetch) -> None:
    """The async twin of `begin`."""
    await _aadvance(flow, to_headers=True)


async def _aadvance(flow: Flow | Fetch, *, to_headers: bool = False) -> None:
    steps, result, error = flow.steps, None, None
    try:
        while True:
            op = steps.send(result) if error is None else steps.throw(error)
            result, error = None, None
            if isinstance(op, Ready):
                if to_headers:
                    return
                continue
            try:
                result = await _aperform(op)
            except BaseException as raised:
                error = raised
    except StopIteration:
        return


async def _aperform(op: Op) -> Any:
    if isinstance(op, Read):
        exchange: Any = op.exchange
        return await (exchange.read_text() if op.text else exchange.read())
    if isinstance(op, Open):
        with op.call.current() if op.call is not None else nullcontext():
            return await op.destination.transport.open(op.send, op.wire)
    if isinstance(op, Close):
        close: Any = op.exchange.close
        return await close()
    if isinstance(op, Sleep):
        return await asyncio.sleep(op.seconds)
    raise AssertionError(op)


@overload
async def achunks(flow: Flow) -> AsyncGenerator[Pair]: ...


@overload
async def achunks(flow: Flow, make: Make[T]) -> AsyncGenerator[T]: ...


async def achunks(flow: Flow, make: Make[Any] = _pair) -> AsyncGenerator[Any]:
    """The async twin of `chunks`."""
    given = _achunks(flow, make)
    await anext(given)
    return given


async def _achunks(flow: Flow, make: Make[T]) -> AsyncGenerator[T]:
    out: dict[str, Any] | Piece | None
    try:
        yield make({}, None)
        while True:
            try:
                await _aadvance(flow)
                if flow.left_as == "closed_by_caller":
                    raise ReadingStopped
                answer, read = flow.begun
                for out in flow.held:
                    yield make(out, None)
                event = answer.event
                for obj in flow.rest:
                    out = event(obj)
                    if out is not None:
                        yield make(out, None)
                while not answer.over:
                    try:
                        objects = await read()
                    except APIConnectionError:
                        if not flow.may_end():
                            raise
                        break
                    if objects is None:
                        break
                    for obj in objects:
                        out = event(obj)
                        if out is not None:
                            yield make(out, None)
                last = answer.end()
                yield make(last, flow.complete())
                return
            except APIError as error:
                if not flow.again(error):
                    raise
    except GeneratorExit as left:
        flow.interrupted(None, flow.left_as)
        if not isinstance(left, ReadingStopped):
            raise
    except BaseException as error:
        flow.interrupted(error)
        raise
    finally:
        flow.steps.close()
        await _aleave(flow)


async def aclose(flow: Flow, given: AsyncGenerator[Any]) -> None:
    """The async twin of `close`."""
    flow.left_as = "closed_by_caller"
    try:
        await given.aclose()
    except RuntimeError:
        if not (isinstance(given, AsyncGeneratorType) and given.ag_running):
            raise
        if flow.exchange is not None:
            flow.exchange.stop()


async def _aleave(flow: Flow) -> None:
    exchange, answer = flow.exchange, flow.answer
    if exchange is None:
        return
    if answer is not None and answer.done:
        await exchange.drain()
    await exchange.close()
