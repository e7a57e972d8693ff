"""What must never be told, and what is told only when the application asks."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs import export as log_export
from tracing_helpers import Backend

from specclient.errors import BadRequestError
from specclient.report import Report
from specclient.tracing import CallStart, ResponseFacts, start_call

PROMPT, PREDICTION, OUTPUT, KEY = "PROMPT-sentinel", "PREDICTION-sentinel", "OUTPUT-sentinel", "sk-sentinel"
BODY = {
    "messages": [
        {"role": "system", "content": f"{PROMPT} 1"},
        {"role": "user", "content": [{"type": "text", "text": f"{PROMPT} 2"}, {"type": "image_url"}]},
    ],
    "prediction": {"type": "content", "content": PREDICTION},
    "tools": [{"type": "function", "function": {"name": f"{PROMPT} 3"}}],
    "metadata": {"key": KEY},
    "user": KEY,
}
ANSWER: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": OUTPUT,
        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
    }
]


def run(backend: Backend, **options: Any) -> str:
    call = start_call(
        CallStart(provider="p", model="m", stream=True, body=BODY, prediction_chars=len(PREDICTION)),
        backend.options(**options),
    )
    wanted = call.wants_content
    error = BadRequestError(f"400: {PROMPT} {PREDICTION} {KEY}", status_code=400, body={"error": PROMPT})
    report = Report(target="t", provider="p", model="m")
    call.finish(report, ResponseFacts(output=ANSWER if wanted else ()), "error", error)
    return backend.span("chat m").to_json()


def sentinels(text: str) -> set[str]:
    return {word for word in (PROMPT, PREDICTION, OUTPUT, KEY) if word in text}


def test_by_default_no_text_leaves(backend: Backend) -> None:
    told = run(backend) + backend.metrics.get_metrics_data().to_json()
    assert sentinels(told) == set()
    assert '"specclient.prediction.chars": 19' in told


@pytest.mark.parametrize(("value", "wanted"), [("true", False), ("", False), ("span_only", True)])
def test_the_standard_variable_decides(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    assert sentinels(run(backend)) == ({PROMPT, PREDICTION, OUTPUT} if wanted else set())


def test_the_shape_of_captured_messages(backend: Backend) -> None:
    run(backend, capture_content="SPAN_ONLY")
    attributes = backend.span("chat m").attributes
    system, user = json.loads(attributes["gen_ai.input.messages"])
    assert system == {"role": "system", "parts": [{"type": "text", "content": f"{PROMPT} 1"}]}
    assert [part["type"] for part in user["parts"]] == ["text", "image_url"]
    (answer,) = json.loads(attributes["gen_ai.output.messages"])
    assert answer["parts"][1] == {"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}
    assert json.loads(attributes["specclient.prediction.content"])["content"] == PREDICTION


@pytest.mark.parametrize(("mode", "on_span"), [("EVENT_ONLY", False), ("SPAN_AND_EVENT", True)])
def test_content_as_an_event(backend: Backend, mode: Any, on_span: bool) -> None:
    if "event_name" not in inspect.signature(LogRecord).parameters:
        pytest.skip("log records have no names in this opentelemetry-api")
    exporter = log_export.InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(log_export.SimpleLogRecordProcessor(exporter))
    told = run(backend, capture_content=mode, logger_provider=provider)
    assert (PROMPT in told) is on_span
    (log,) = exporter.get_finished_logs()
    record = log.log_record
    assert record.event_name == "gen_ai.client.inference.operation.details"
    assert record.trace_id == backend.span("chat m").context.trace_id
    assert OUTPUT in record.attributes["gen_ai.output.messages"]
    provider.shutdown()
