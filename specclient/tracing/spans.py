"""What a finished call writes: attributes, events, status, and the child spans.

Children are made at the end, in one go, from stored stamps with explicit times: nothing is held open,
so nothing leaks, and a call that is not recorded pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from specclient.core.stamps import NANOSECONDS
from specclient.report import Attempt, Report
from specclient.tracing import content, habit, names
from specclient.tracing.ended import Ended
from specclient.tracing.finaliser import end_span

if TYPE_CHECKING:
    from specclient.tracing.call import Call

OURS = ("specclient.", "gen_ai.latency.")


def request_attributes(call: Call) -> None:
    """Everything the request says, onto a span that is recorded."""
    body = dict(call.start.body or {})
    count = body.get("n")
    format_type = names.dig(body, "response_format.type")
    known_formats = {"json_object": "json", "json_schema": "json", "text": "text"}
    derived = {
        "stream": True if call.start.stream else None,
        "choice_count": count if count != 1 else None,
        "max_tokens": body.get("max_completion_tokens", body.get("max_tokens")),
        "output_type": known_formats.get(format_type) if isinstance(format_type, str) else None,
        "openai": {"service_tier": body.get("service_tier")} if call.start.provider == "openai" else None,
    }
    found = names.walk(names.REQUEST, {"start": call.start, "body": body, "derived": derived})
    if call.options.openinference_alias:
        found["openinference.span.kind"] = "LLM"
    write(call, found)


def write(call: Call, found: Mapping[str, names.AttributeValue]) -> None:
    """Onto the call's span; onto another instrumentation's span only what is ours to say."""
    if not call.owned:
        found = {name: value for name, value in found.items() if name.startswith(OURS)}
    call.span.set_attributes(found)


def describe(ended: Ended) -> None:
    """Attributes, events, status and children of a recorded call."""
    call, roots, options = ended.call, ended.roots(), ended.call.options
    rows = [*names.RESPONSE, *names.TIMING]
    if ended.report is not None:
        rows += names.PREDICTION
        rows += names.ECONOMICS if ended.report.economics is not None else ()
    for wanted, table in (
        (options.latency_aliases, names.LATENCY_ALIASES),
        (options.usage_aliases, names.USAGE_ALIASES),
        (options.cache_creation_alias, names.CACHE_CREATION_ALIAS),
        (options.langfuse_alias, names.LANGFUSE_ALIAS),
    ):
        if wanted:
            rows += table
    write(call, names.walk(rows, roots))
    if call.start.stream:
        _first_events(ended)
    if ended.report is not None:
        habit.note(call.span, ended.report, call.start, call.timeline)
        _children(ended, ended.report)
    if ended.error_type is not None and call.owned:
        call.span.set_attribute(names.ERROR_TYPE, ended.error_type)
        call.span.set_status(Status(StatusCode.ERROR, _described(ended)))
    if options.content != "NO_CONTENT" and call.owned:
        content.capture(call, ended.facts)


def _described(ended: Ended) -> str | None:
    """A status text that cannot hold content: messages of providers may echo the prompt."""
    return "abandoned stream" if ended.outcome == "abandoned" else None


def _first_events(ended: Ended) -> None:
    stamps, timeline, span = ended.stamps, ended.call.timeline, ended.call.span
    if stamps.first_frame is not None:
        span.add_event("first_chunk", timestamp=timeline.at(stamps.first_frame))
    if stamps.first_content is not None:
        span.add_event("first_content", timestamp=timeline.at(stamps.first_content))
        if ended.call.options.openinference_alias:
            span.add_event("First Token Stream Event", timestamp=timeline.at(stamps.first_content))


def _children(ended: Ended, report: Report) -> None:
    _attempts(ended, report)
    wanted = ended.call.options.phases
    if wanted == "none":
        return
    if report.timing.client.load:
        # Minutes in which nothing is asked yet: no stopwatch's guess at a server, so told with its phases.
        began = ended.call.timeline.seconds(ended.stamps.started)
        _child(ended, "load", began, began + report.timing.client.load, "client")
    begin = report.timing.phases_at
    if begin is not None:
        for name in ("queue", "prefill", "decode"):
            phase = getattr(report.timing, name)
            if phase is not None:
                _child(ended, name, begin, begin + phase.seconds, phase.source)
                begin += phase.seconds
    elif wanted == "all":
        begin = report.timing.sent_at or 0.0
        for name in ("await_headers", "await_content", "receive"):
            seconds = getattr(report.timing.client, name)
            if seconds:
                _child(ended, name, begin, begin + seconds, "client")
                begin += seconds


def _child(ended: Ended, name: str, begin: float, end: float, source: str) -> None:
    """One phase. Only the provider of all `gen_ai.` names: Langfuse keeps such a span, and no backend
    takes it for a model call of its own."""
    timeline = ended.call.timeline
    first, last = (timeline.at(timeline.started + round(moment * NANOSECONDS)) for moment in (begin, end))
    limit = timeline.at(timeline.ended or timeline.started)
    attributes: dict[str, Any] = {
        names.PHASE: name,
        names.TIMING_SOURCE: source,
        names.PROVIDER: ended.call.start.provider,
    }
    speculation = ended.report.speculation if ended.report is not None else None
    if name == "decode" and speculation is not None:
        rows = [row for row in names.PREDICTION if row[0].startswith("specclient.speculation.")]
        attributes.update(names.walk(rows, ended.roots()))
    if ended.call.options.openinference_alias:
        attributes["openinference.span.kind"] = "CHAIN"
    span = ended.call.options.tracer.start_span(
        name,
        context=trace.set_span_in_context(ended.call.span),
        kind=SpanKind.INTERNAL,
        start_time=first,
        attributes=attributes,
    )
    end_span(span, min(last, limit))


def _attempts(ended: Ended, report: Report) -> None:
    """One span a try, only where there was more than one."""
    call = ended.call
    stamps = call.timeline.attempts
    if len(stamps) < 2:
        return
    mine = [attempt for attempt in report.attempts if attempt.target == report.target][-len(stamps) :]
    known: list[Attempt | None] = [*mine] if len(mine) == len(stamps) else [None] * len(stamps)
    for number, (stamp, attempt) in enumerate(zip(stamps, known, strict=True), start=1):
        attributes: dict[str, Any] = {
            "specclient.attempt": number,
            names.PROVIDER: call.start.provider,
            "specclient.attempt.waited": stamp.waited,
        }
        if attempt is not None and attempt.status is not None:
            attributes["http.response.status_code"] = attempt.status
        if attempt is not None and attempt.error is not None:
            attributes[names.ERROR_TYPE] = attempt.error
        span = call.options.tracer.start_span(
            "attempt",
            context=trace.set_span_in_context(call.span),
            start_time=call.timeline.at(stamp.started),
            attributes=attributes,
        )
        if attempt is not None and attempt.error is not None:
            span.set_status(Status(StatusCode.ERROR))
        end_span(span, call.timeline.at(stamp.ended or call.timeline.ended or stamp.started))
