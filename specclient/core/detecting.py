"""Finding out, once per server, which one answers and how it drafts, where a target asks for that.

What the configuration says wins: a finding fills in only what it leaves open. A server that answers none
of the questions is left as it was configured, and the call goes on.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from specclient.config.target import Timeout
from specclient.core.destination import CallOptions, Destination
from specclient.core.timeline import Timeline
from specclient.core.wire import Wire
from specclient.errors import APIConnectionError, APIError
from specclient_providers.detection import Detected, Detections, steps
from specclient_providers.signs import Answer

if TYPE_CHECKING:
    from specclient.core.ops import Op

_memory = Detections()
_LIMITS = Timeout.of(5.0)


def detecting(destination: Destination, options: CallOptions) -> Generator[Op, Any, None]:
    """Operations for the flow's driver; afterwards the destination knows what was found."""
    if not destination.wants_detection:
        return
    facts = destination.facts("chat", destination.target.model)
    parts = urlsplit(facts.base_url or "")
    root = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", ""))
    found = _memory.recall(root)
    if found is None:
        found = yield from _ask(destination, options, root)
        if found is None:
            return
        _memory.keep(root, found)
    destination.take(found)


def _ask(destination: Destination, options: CallOptions, root: str) -> Generator[Op, Any, Detected | None]:
    asking = steps()
    answer: Answer | None = None
    try:
        while True:
            method, path = asking.send(answer)
            try:
                answer = yield from _fetch(destination, options, method, root + path)
            except APIConnectionError:
                return None  # the call itself will say what is wrong with the connection
            except APIError:
                answer = None
    except StopIteration as end:
        found: Detected = end.value
        return found


def _fetch(
    destination: Destination, options: CallOptions, method: str, url: str
) -> Generator[Op, Any, Answer]:
    from specclient.core.ops import Close, Open, Read

    send = replace(destination.request(method, "", options=options), url=url)
    timeline = Timeline()
    timeline.attempt_started()
    exchange = yield Open(destination, send, Wire(_LIMITS, timeline), None)
    try:
        text = yield Read(exchange, text=True)
    finally:
        yield Close(exchange)
    try:
        return exchange.status, exchange.headers, json.loads(text)
    except ValueError:
        return exchange.status, exchange.headers, text
