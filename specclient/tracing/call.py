"""One call's span, from its start to its one end.

Nothing here raises into the caller: a fault is logged at debug level and the call goes on untraced.
The span is current only inside `current()`, which is held around one transport call or one read and
never across a yield: a context that is attached in one task and detached in another is an error.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import MutableMapping
from contextvars import Token
from typing import Any, Literal

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind

from specclient._version import __version__
from specclient.core.timeline import Timeline
from specclient.report import Report
from specclient.tracing import interop, names, propagation, spans
from specclient.tracing.ended import Ended
from specclient.tracing.facts import CallStart, ResponseFacts
from specclient.tracing.finaliser import CallOutcome, end_span
from specclient.tracing.metrics import record
from specclient.tracing.options import DEFAULT_OPTIONS, TracingOptions

log = logging.getLogger(__name__)

NO_FACTS = ResponseFacts()
NOTHING: dict[str, Any] = {}


class Current:
    """Makes a call's span the current one for the length of a `with` block."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context | None) -> None:
        self._context = context
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        if self._context is not None:
            self._token = otel_context.attach(self._context)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
            self._token = None


class Call:
    """A started call. `timeline` is its stopwatch; `finish` ends it, and only the first one counts.

    `owned` says whether `span` is our own: on a span of another instrumentation only what is ours to say
    is written, and it is left open.
    """

    __slots__ = (
        "_context",
        "_first",
        "_named",
        "identity",
        "options",
        "owned",
        "request_id",
        "span",
        "start",
        "timeline",
    )

    def __init__(self, start: CallStart, options: TracingOptions, timeline: Timeline) -> None:
        self.start = start
        self.options = options
        self.timeline = timeline
        self.span: Span = trace.INVALID_SPAN
        self.identity: dict[str, Any] = NOTHING
        self.request_id: str | None = None
        """The name that the last try carried to a server that takes one; whoever sends it says so."""
        self._named = 0
        self._context: Context | None = None
        self.owned = False
        self._first = threading.Lock()

    @property
    def wants_content(self) -> bool:
        """Whether the application asked for texts in its telemetry: only then are they worth keeping."""
        return self.options.content != "NO_CONTENT" and self.span.is_recording()

    @property
    def listening(self) -> bool:
        """Whether anybody receives what this call tells at its end."""
        return self.options.telemetry != "off" and (
            self.span.is_recording() or self.options.instruments.active
        )

    def inject(
        self,
        headers: MutableMapping[str, str],
        self_hosted: bool,
        policy: Literal["auto", "always", "never"] = "auto",
        *,
        id_header: str | None = None,
    ) -> None:
        """Add `traceparent` to request headers where the policy allows it; never baggage.

        `policy` is the target's own; "auto" leaves it to the options. A server at a private address
        counts as self-hosted whatever it is. `id_header` is the header in which the server documents to
        take the request's name: its logs and spans then carry the ids of this call's span.
        """
        chosen = self.options.propagate if policy == "auto" else policy
        try:
            near = self_hosted or propagation.is_private(self.start.server_address)
            propagation.inject(headers, self.span, chosen, self_hosted=near)
            if id_header is not None and chosen != "never":
                self._named += 1
                headers[id_header] = propagation.request_id(self.span, self._named)
        except Exception:
            log.debug("trace context not injected", exc_info=True)

    def current(self) -> Current:
        """The span as the current one, for one transport call or one read; never across a yield."""
        return Current(self._context)

    def finish(
        self,
        report: Report | None = None,
        facts: ResponseFacts = NO_FACTS,
        outcome: CallOutcome = "completed",
        error: BaseException | None = None,
    ) -> bool:
        """End the call; True if this was the end that counted."""
        if not self._first.acquire(blocking=False):
            return False
        self.timeline.done()
        if self.options.telemetry == "off":
            return True
        try:
            if self.listening:
                self._record(report, facts, outcome, error)
        except Exception:
            log.debug("telemetry of a call not recorded", exc_info=True)
        if self.owned:
            end_span(self.span, self.timeline.at(self.timeline.ended or self.timeline.started))
        return True

    def _record(
        self, report: Report | None, facts: ResponseFacts, outcome: CallOutcome, error: BaseException | None
    ) -> None:
        recording, metered = self.span.is_recording(), self.options.instruments.active
        ended = Ended(self, report, facts, outcome, error)
        if recording:
            spans.describe(ended)
        if metered:
            record(
                self.options.instruments,
                self.identity,
                report=report,
                stamps=self.timeline.attempt,
                facts=facts,
                derived=ended.derived,
                duration=self.timeline.seconds(self.timeline.ended or self.timeline.started),
                error_type=ended.error_type,
                in_process=self.start.in_process,
                owned=self.owned,
            )


class Unheard:
    """A call that nobody listens to, in the place of a `Call`: nothing of it is written down."""

    __slots__ = ("_options", "request_id")

    wants_content = listening = False

    def __init__(self, options: TracingOptions) -> None:
        self._options = options
        self.request_id: str | None = None

    def inject(
        self,
        headers: MutableMapping[str, str],
        _self_hosted: bool,
        policy: Literal["auto", "always", "never"] = "auto",
        *,
        id_header: str | None = None,
    ) -> None:
        """As `Call.inject`: without a trace, only the name of the request is left to send."""
        chosen = self._options.propagate if policy == "auto" else policy
        if id_header is not None and chosen != "never":
            headers[id_header] = propagation.request_id(trace.INVALID_SPAN, 1)

    def current(self) -> None:
        """No span is current."""


def start_call(
    start: CallStart, options: TracingOptions = DEFAULT_OPTIONS, *, parent: Context | None = None
) -> Call:
    """Begin a call: its stopwatch, and its span (CLIENT, or INTERNAL in process) named by the conventions.

    Where another instrumentation owns the call already, or `telemetry="enrich"`, no span is opened and
    what is learnt goes onto the current one.
    """
    call = Call(start, options, start.timeline or Timeline())
    if options.telemetry == "off":
        return call
    try:
        _identify(call)
        if options.telemetry == "enrich" or interop.owned_elsewhere():
            call.span = trace.get_current_span(parent)
        else:
            _open(call, parent)
        if call.span.is_recording():
            spans.request_attributes(call)
    except Exception:
        log.debug("call not traced", exc_info=True)
    return call


def _identify(call: Call) -> None:
    """What a head sampler and the metrics go by."""
    start = call.start
    model = names.model_name(start.model, in_process=start.in_process)
    identity: dict[str, Any] = {names.OPERATION: start.operation, names.PROVIDER: start.provider}
    call.identity = identity
    if model:
        identity[names.REQUEST_MODEL] = model
    if start.server_address:
        identity[names.SERVER_ADDRESS] = start.server_address
        if start.server_port is not None:
            identity[names.SERVER_PORT] = start.server_port
    identity["specclient.version"] = __version__
    if start.adapter:
        identity["specclient.adapter"] = start.adapter


def _open(call: Call, parent: Context | None) -> None:
    start, model = call.start, call.identity.get(names.REQUEST_MODEL)
    call.span = call.options.open(
        f"{start.operation} {model}" if model else start.operation,
        parent,
        SpanKind.INTERNAL if start.in_process else SpanKind.CLIENT,
        call.identity,
        call.timeline.wall,
    )
    call.owned = True
    if call.span.get_span_context().is_valid:
        context = trace.set_span_in_context(call.span, parent)
        call._context = interop.claim(context)
