"""Texts in telemetry, only where the application asked for them.

OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT decides; unset means none. The prediction is content
like the prompt. Messages take the conventions' shape: a role and parts. The event needs an
opentelemetry-api whose log records have names; with an older one texts can only go onto the span.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord, get_logger

from specclient._version import __version__

if TYPE_CHECKING:
    from specclient.tracing.call import Call
    from specclient.tracing.facts import ResponseFacts

EVENT = "gen_ai.client.inference.operation.details"


def capture(call: Call, facts: ResponseFacts) -> None:
    """Put the texts where the mode says: onto the span, into a log event, or both."""
    body = call.start.body or {}
    attributes: dict[str, str] = {}
    if body.get("messages"):
        attributes["gen_ai.input.messages"] = _dump(map(_message, body["messages"]))
    if facts.output:
        attributes["gen_ai.output.messages"] = _dump(map(_message, facts.output))
    if body.get("tools"):
        attributes["gen_ai.tool.definitions"] = _dump(body["tools"])
    if body.get("prediction") is not None:
        attributes["specclient.prediction.content"] = _dump(body["prediction"])
    mode = call.options.content
    if mode in ("SPAN_ONLY", "SPAN_AND_EVENT"):
        call.span.set_attributes(attributes)
    if mode in ("EVENT_ONLY", "SPAN_AND_EVENT"):
        moment = call.timeline.at(call.timeline.ended or call.timeline.started)
        logger = get_logger("specclient", __version__, call.options.logger_provider)
        logger.emit(
            LogRecord(
                timestamp=moment,
                context=trace.set_span_in_context(call.span),
                attributes={**call.identity, **attributes},
                event_name=EVENT,
            )
        )


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        return {"role": "unknown", "parts": []}
    parts: list[dict[str, Any]] = []
    content = message.get("content")
    if isinstance(content, str):
        parts.append({"type": "text", "content": content})
    elif isinstance(content, Iterable):
        parts += [_part(part) for part in content]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        parts.append(
            {
                "type": "tool_call",
                "id": call.get("id"),
                "name": function.get("name"),
                "arguments": function.get("arguments"),
            }
        )
    return {"role": message.get("role", "assistant"), "parts": parts}


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, Mapping) and part.get("type") == "text":
        return {"type": "text", "content": part.get("text")}
    return {"type": part.get("type", "unknown") if isinstance(part, Mapping) else "unknown"}


def _dump(value: Any) -> str:
    return json.dumps(list(value) if not isinstance(value, Mapping | str) else value, ensure_ascii=False)
