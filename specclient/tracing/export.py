"""Spans into a file: OTLP's own JSON, one export request a line.

The format is the OTLP file format, which collectors read too (trace ids in hexadecimal, times as strings
of nanoseconds). Needs the OpenTelemetry SDK.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.trace import SpanKind, StatusCode

try:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("opentelemetry.sdk"):
        raise
    raise ModuleNotFoundError(
        f"Exporting spans needs {error.name}: pip install 'specclient[otel]'.", name=error.name
    ) from None

_KINDS = {
    SpanKind.INTERNAL: 1,
    SpanKind.SERVER: 2,
    SpanKind.CLIENT: 3,
    SpanKind.PRODUCER: 4,
    SpanKind.CONSUMER: 5,
}
_STATUS = {StatusCode.UNSET: 0, StatusCode.OK: 1, StatusCode.ERROR: 2}


class JsonlSpanExporter(SpanExporter):
    """Appends finished spans to `path`; `specclient trace` draws them."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.RLock()  # the end of a dropped call may come at any allocation

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line. A file that cannot be written is a failed export, as the SDK expects."""
        if not spans:
            return SpanExportResult.SUCCESS
        line = json.dumps(encode(spans), ensure_ascii=False, separators=(",", ":")) + "\n"
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def encode(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """An OTLP export request: spans under their scopes under their resources."""
    resources: dict[int, tuple[Mapping[str, Any], dict[tuple[str, str | None], list[Any]]]] = {}
    for span in spans:
        scope = span.instrumentation_scope
        name = (scope.name, scope.version) if scope is not None else ("", None)
        _, scopes = resources.setdefault(id(span.resource), (span.resource.attributes, {}))
        scopes.setdefault(name, []).append(_span(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(attributes)},
                "scopeSpans": [
                    {"scope": {"name": name, **({"version": version} if version else {})}, "spans": found}
                    for (name, version), found in scopes.items()
                ],
            }
            for attributes, scopes in resources.values()
        ]
    }


def _span(span: ReadableSpan) -> dict[str, Any]:
    context = span.context
    status: dict[str, Any] = {"code": _STATUS[span.status.status_code]}
    if span.status.description:
        status["message"] = span.status.description
    encoded: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}" if context is not None else "",
        "spanId": f"{context.span_id:016x}" if context is not None else "",
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes or {}),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": str(event.timestamp),
                "attributes": _attributes(event.attributes or {}),
            }
            for event in span.events
        ],
        "status": status,
    }
    if span.parent is not None:
        encoded["parentSpanId"] = f"{span.parent.span_id:016x}"
    return encoded


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
