"""The way of one request through a wrapped client, as steps that a sync or an async transport performs.

One request goes out, and at most one more: when the endpoint refuses the prediction, by a status or by an
error in a 200 that holds nothing else, the same request is sent again without it, because no SDK would do
that. Every other failure goes back to the SDK as it came; its own retries reach us as new requests (see
`pending`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping
from datetime import timedelta
from typing import Any

from specclient.core.timeline import Timeline
from specclient.errors import SpecclientError
from specclient.middleware.call import WrappedCall
from specclient.middleware.context import KEY
from specclient.middleware.endpoints import LOCAL
from specclient.middleware.family import Family
from specclient.middleware.local import Local
from specclient.middleware.opening import opened
from specclient.middleware.peek import Peek
from specclient.middleware.relay import AskAgain, EventRelay
from specclient.middleware.settings import Settings
from specclient.middleware.steps import Read, Send, Step, is_raw

log = logging.getLogger("specclient.middleware")

Steps = Generator[Step | Peek | Local, Any, Any]
Perform = Callable[[Steps], Any]

_RECODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def exchange(request: Any, family: Family, settings: Settings, perform: Perform, *, is_async: bool) -> Steps:
    """The steps from a request to the response that the SDK gets.

    `perform` takes further steps, where the body of a response finds out that it is a refusal.
    """
    call: WrappedCall | Local | None = None
    if settings.active:
        try:
            call = opened(request, family, settings)
        except SpecclientError as error:
            return _given(refusal(request, family, 400, str(error), is_async=is_async))
        except Exception as error:
            # A fault of ours must not cost the caller his answer, but it must not go unseen either.
            log.warning("a request passed through unwatched: %s in specclient", type(error).__name__)
            log.debug("the fault", exc_info=True)
            if settings.strict:
                sentence = f"specclient failed with {type(error).__name__} before sending, and strict is set."
                return _given(refusal(request, family, 500, sentence, is_async=is_async))
    if isinstance(call, WrappedCall):
        return _answer(call, request, family, perform, is_async=is_async)
    if call is not None:
        return _taken(call)
    if request.url.scheme == LOCAL:
        sentence = "A local:// address answers chat completions only, through specclient.wrap."
        return _given(refusal(request, family, 404, sentence, is_async=is_async))
    return _taken(Send(request))


def _taken(step: Send | Local) -> Steps:
    return (yield step)


def _given(response: Any) -> Steps:
    yield from ()
    return response


def _answer(call: WrappedCall, request: Any, family: Family, perform: Perform, *, is_async: bool) -> Steps:
    while True:
        call.attempt_started()
        try:
            response = yield Send(call.wire_request(request, family), call.trace.current())
            told = family.headers(response.headers)
            call.headers(response.status_code, told)
            raw = is_raw(response, told)
            if response.status_code < 300:
                kind, content = told.get(b"content-type", b""), None
                if call.streamed and kind.startswith(b"application/json"):
                    content = yield Peek(response, raw)
                elif not (call.streamed or kind.startswith(b"text/event-stream")):
                    content = yield Read(response, raw)
                if isinstance(content, bytes):
                    try:
                        content = call.plain(content)
                    except AskAgain:
                        continue
                    if raw and call.is_read_whole:
                        made = _mark_as_read(response, content, call.timeline)
                        if call.value is not None:
                            family.at_hand.hold(made, call.value)
                    else:
                        made = with_body(response, told, content, family, raw=raw, is_async=is_async)
                    made.extensions[KEY] = call.report
                    return made

                def again() -> Any:
                    return perform(_answer(call, request, family, perform, is_async=is_async))

                return _streamed(call, response, content, again, family, raw=raw, is_async=is_async)
            if call.may_downgrade:
                body = yield Read(response, raw)
                if call.downgraded(response.status_code, body):
                    continue
                response = with_body(response, told, body, family, raw=raw, is_async=is_async)
        except BaseException as error:
            call.attempt_failed(error)
            raise
        call.answered_with_error(response.status_code, told)
        return response


def _streamed(
    call: WrappedCall,
    response: Any,
    blocks: Any,
    again: Callable[[], Any],
    family: Family,
    *,
    raw: bool,
    is_async: bool,
) -> Any:
    """The response whose body is watched; `blocks` are those of the body where it has begun to be read."""
    # A response that has begun to be decoded cannot be given another body, so those are made anew.
    call.listen()
    relay = EventRelay(call)
    body_class = family.async_body if is_async else family.body
    if not raw:
        blocks = blocks or (response.aiter_bytes() if is_async else response.iter_bytes())
        close = response.aclose if is_async else response.close
        body = body_class(blocks, close, relay, response.extensions, again)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _RECODED]
        made = family.module.Response(
            response.status_code, headers=headers, stream=body, extensions=response.extensions
        )
    else:
        made, stream = response, response.stream
        blocks = blocks or (aiter(stream) if is_async else iter(stream))
        close = stream.aclose if is_async else stream.close
        made.stream = body = body_class(blocks, close, relay, response.extensions, again)
        made.headers.pop("content-length", None)  # the report makes it longer
    call.end.watch(body)
    call.extensions = made.extensions
    return made


def with_body(
    response: Any,
    told: Mapping[bytes, bytes],
    content: bytes,
    family: Family,
    *,
    raw: bool,
    is_async: bool,
) -> Any:
    """A response like this one, whose headers `told` are, with a body that is at hand and not encoded."""
    kind = family.async_bytes_body if is_async else family.bytes_body
    if raw:
        response.stream = kind(content)
        if b"content-length" in told:
            response.headers["content-length"] = str(len(content))
        return response
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _RECODED]
    headers.append(("content-length", str(len(content))))
    return family.module.Response(
        response.status_code, headers=headers, stream=kind(content), extensions=response.extensions
    )


def _mark_as_read(response: Any, content: bytes, timeline: Timeline) -> Any:
    """What reading the body would do to the response: the SDK is going to read all of it, and it is here.

    Its headers stay the server's own, the length among them: nobody reads the stream by them any more.
    """
    response._content = content
    response._num_bytes_downloaded = len(content)
    response.is_stream_consumed = response.is_closed = True
    response.elapsed = timedelta(seconds=timeline.seconds_of_attempt())
    return response


def refusal(request: Any, family: Family, status: int, sentence: str, *, is_async: bool) -> Any:
    """An error in OpenAI's shape that no endpoint sent; SDKs are told not to retry it."""
    code = "prediction_refused" if status == 400 else "specclient_error"
    error = {"message": sentence, "type": "invalid_request_error", "param": "prediction", "code": code}
    content = json.dumps({"error": error if status == 400 else error | {"param": None}}).encode()
    headers = {"content-type": "application/json", "x-should-retry": "false"}
    headers["content-length"] = str(len(content))
    body = family.async_bytes_body if is_async else family.bytes_body
    return family.module.Response(status, headers=headers, stream=body(content), request=request)
