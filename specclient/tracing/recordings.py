"""Recorded calls from text: reports and OTLP spans, as JSON or as JSON lines, into pictures.

A report is found wherever it stands in an object: alone, under `report` (what `specclient edit --json`
writes) or under `specclient` (an answer, or the last chunk of a stream).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from specclient.report import Report
from specclient.tracing import names
from specclient.tracing.picture import PHASES, Bar, Kind, Picture, of_report, seconds_text

NANOSECONDS = 1e9
_KINDS = (
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
)


class NotARecording(ValueError):
    """The text holds neither a report nor spans."""


@dataclass(slots=True)
class RecordedSpan:
    """A finished span, with what a picture needs; times in nanoseconds since the epoch."""

    trace: str
    id: str
    parent: str | None
    name: str
    kind: int
    start: int
    end: int
    service: str | None
    attributes: dict[str, Any]
    error: bool
    children: list[RecordedSpan] = field(default_factory=list)


def pictures(text: str) -> list[Picture]:
    """Every call that `text` holds, in its order; spans of one trace make one picture.

    Raises NotARecording where there is none.
    """
    _refuse_console_spans(text)
    found: list[Picture] = []
    spans: list[RecordedSpan] = []
    for document in _documents(text):
        found += [of_report(report) for report in _reports(document)]
        spans += _spans(document)
    found += _traces(spans)
    if not found:
        raise NotARecording("it holds neither a report nor OTLP spans")
    return found


def _refuse_console_spans(text: str) -> None:
    """Name the output of OpenTelemetry's ConsoleSpanExporter: objects of many lines, one after another."""
    try:
        first, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return
    if isinstance(first, Mapping) and {"context", "parent_id", "start_time"} <= first.keys():
        raise NotARecording(
            "it is the output of OpenTelemetry's ConsoleSpanExporter, which is not OTLP JSON; record with "
            "specclient.tracing.export.JsonlSpanExporter instead, or keep what an OTLP exporter sends as JSON"
        )


def _documents(text: str) -> Iterator[Any]:
    """One JSON document, or one a line."""
    try:
        yield json.loads(text)
        return
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line.removeprefix("data: "))
        except ValueError:
            if line.strip() == "data: [DONE]":
                continue
            raise NotARecording(f"line {number} is not JSON") from None


def _reports(value: Any) -> Iterator[Report]:
    if isinstance(value, list):
        for item in value:
            yield from _reports(item)
    elif isinstance(value, Mapping):
        if {"target", "provider", "timing"} <= value.keys():
            try:
                yield Report.model_validate(value)
            except ValidationError as error:
                where = ".".join(str(part) for part in error.errors()[0]["loc"])
                raise NotARecording(f"its report is not one of this version, see {where}") from None
        else:
            for item in value.values():
                yield from _reports(item)


def _spans(document: Any) -> Iterator[RecordedSpan]:
    requests = document if isinstance(document, list) else [document]
    for request in requests:
        for resource in _list(request, "resourceSpans", "resource_spans"):
            service = _text(_attributes(_list(resource.get("resource"), "attributes")).get("service.name"))
            for scope in _list(resource, "scopeSpans", "scope_spans"):
                for span in _list(scope, "spans"):
                    yield _span(span, service)


def _list(value: Any, *keys: str) -> list[Any]:
    found = next((value[key] for key in keys if isinstance(value, Mapping) and key in value), None)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _span(span: Mapping[str, Any], service: str | None) -> RecordedSpan:
    try:
        return RecordedSpan(
            trace=str(span["traceId"]),
            id=str(span["spanId"]),
            parent=_text(span.get("parentSpanId")),
            name=str(span.get("name", "")),
            kind=_span_kind(span.get("kind")),
            start=int(span["startTimeUnixNano"]),
            end=int(span["endTimeUnixNano"]),
            service=service,
            attributes=_attributes(_list(span, "attributes")),
            error=_fails(span.get("status")),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise NotARecording(f"a span in it is incomplete: {error}") from None


def _span_kind(value: Any) -> int:
    """OTLP's JSON writes numbers; protobuf's own JSON, which some exporters write, has names."""
    if isinstance(value, str) and value in _KINDS:
        return _KINDS.index(value)
    return int(value or 0)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _fails(status: Any) -> bool:
    return isinstance(status, Mapping) and status.get("code") in (2, "STATUS_CODE_ERROR")


def _attributes(pairs: list[Any]) -> dict[str, Any]:
    return {str(pair.get("key")): _value(pair.get("value")) for pair in pairs}


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping) or not value:
        return value
    kind, inner = next(iter(value.items()))
    if kind == "intValue":
        try:
            return int(inner)  # a string, as JSON has no whole numbers of 64 bits
        except (TypeError, ValueError, OverflowError):
            return None
    if kind == "arrayValue":
        return [_value(item) for item in _list(inner, "values")]
    return inner


def _traces(spans: list[RecordedSpan]) -> Iterator[Picture]:
    traces: dict[str, list[RecordedSpan]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    for trace, members in traces.items():
        known = {span.id: span for span in members}
        roots: list[RecordedSpan] = []
        for span in sorted(members, key=lambda span: (span.start, -span.end)):
            parent = known.get(span.parent or "")
            (parent.children if parent is not None else roots).append(span)
        yield _picture(trace, members, roots)


def _picture(trace: str, members: list[RecordedSpan], roots: list[RecordedSpan]) -> Picture:
    origin = min(span.start for span in members)
    seconds = (max(span.end for span in members) - origin) / NANOSECONDS
    bars: list[Bar] = []
    facts: list[tuple[str, str]] = []
    remarks: list[str] = []
    several = len({span.service for span in members}) > 1
    for root in roots:
        _draw(root, origin, 0, several, bars)
    for span in members:
        facts += _facts(span)
        remarks += _remarks(span)
    return Picture(f"trace {trace}", seconds, tuple(bars), tuple(facts), tuple(remarks))


def _draw(span: RecordedSpan, origin: int, depth: int, several: bool, bars: list[Bar]) -> None:
    note = ", ".join(part for part in (span.service if several else None, _error(span)) if part)
    start, seconds = (span.start - origin) / NANOSECONDS, (span.end - span.start) / NANOSECONDS
    kind = _kind(span)
    source = _text(span.attributes.get(names.TIMING_SOURCE)) if kind in ("phase", "client") else None
    if source is None:
        source = "server" if span.kind == 2 else "client"
    bars.append(Bar(span.name, start, seconds, source, kind, depth, note))
    gap = span.attributes.get("specclient.timing.unattributed")
    first = min((child.start for child in span.children if child.name in PHASES), default=None)
    if isinstance(gap, int | float) and 0 < gap < math.inf and first is not None:
        bars.append(Bar("unattributed", (first - origin) / NANOSECONDS - gap, gap, None, "gap", depth + 1))
    for child in span.children:
        _draw(child, origin, depth + 1, several, bars)


def _kind(span: RecordedSpan) -> Kind:
    if names.PHASE in span.attributes:
        return "phase" if span.name in PHASES else "client"
    if span.name == "attempt":
        return "attempt"
    return "call" if names.OPERATION in span.attributes else "other"


def _error(span: RecordedSpan) -> str | None:
    return str(span.attributes.get(names.ERROR_TYPE, "error")) if span.error else None


def _facts(span: RecordedSpan) -> Iterator[tuple[str, str]]:
    attributes = span.attributes
    outcome = attributes.get("specclient.prediction.outcome")
    if outcome not in (None, "none"):
        effect = attributes.get("specclient.prediction.effect", "unknown")
        yield "prediction", f"{outcome}, effect {effect}"
        source = attributes.get("specclient.prediction.counts_source", "source unknown")
        for name in ("accepted", "rejected"):
            count = attributes.get(f"specclient.prediction.{name}_tokens")
            if count is not None:
                yield f"{name} tokens", f"{count} ({source})"
    for label, name in (
        ("time to first chunk", names.TIME_TO_FIRST_CHUNK),
        ("time to first content", "specclient.timing.time_to_first_content"),
    ):
        seconds = attributes.get(name)
        if isinstance(seconds, int | float) and abs(seconds) < math.inf:
            yield label, f"{seconds_text(seconds)} (client)"


def _remarks(span: RecordedSpan) -> Iterator[str]:
    if span.attributes.get("specclient.timing.consistent") is False:
        yield "The reported phases do not fit into the call as the client saw it, so none is drawn."
