"""Traces read back from real backends by their APIs.

Run with PHOENIX_COMMAND or MLFLOW_COMMAND naming the executable:

    PHOENIX_COMMAND=venv/bin/phoenix pytest -m backend tests/tracing
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import backends
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from tracing_helpers import Clock

from specclient.report import Phase, PredictionReport, Report
from specclient.tracing import CallStart, ResponseFacts, TracingOptions, start_call

pytestmark = [pytest.mark.backend, pytest.mark.timeout(400)]

PLACES = {"chat m": (0, 2005), "queue": (25, 125), "prefill": (125, 425), "decode": (425, 2005)}
"""Milliseconds from the call's start."""


class Reading:
    queue = Phase(seconds=0.1, source="server")
    prefill = Phase(seconds=0.3, source="server")
    decode = Phase(seconds=1.58, source="derived")


def send_a_call(exporter: OTLPSpanExporter, clock: Clock, **resource: str) -> tuple[int, str]:
    """A call of 2005 ms; its start in nanoseconds since the epoch, and its trace's id."""
    clock.wall_now = time.time_ns() // 1000 * 1000
    provider = TracerProvider(resource=Resource.create(resource))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    call = start_call(
        CallStart(provider="groq", model="m", stream=True, timeline=clock.timeline()),
        TracingOptions(tracer_provider=provider),
    )
    call.timeline.attempt_started()
    clock.advance(5)
    call.timeline.sent()
    for milliseconds in (420, 1580):
        clock.advance(milliseconds)
        call.timeline.frame()
        call.timeline.content()
    timing = call.timeline.timing(Reading(), streamed=True)
    prediction = PredictionReport(outcome="forwarded", effect="used", accepted_tokens=40)
    report = Report(target="t", provider="groq", model="m", timing=timing, prediction=prediction)
    call.finish(report, ResponseFacts(model="m-1", input_tokens=12, output_tokens=60))
    provider.shutdown()
    return clock.wall_now, f"{call.span.get_span_context().trace_id:032x}"


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def eventually(question: Any, seconds: float = 30) -> Any:
    until = time.monotonic() + seconds
    while True:
        try:
            found = question()
        except OSError:
            found = None
        if found:
            return found
        assert time.monotonic() < until, "the trace did not arrive"
        time.sleep(0.5)


def microseconds(moment: str) -> int:
    value = datetime.fromisoformat(moment)
    return int(value.timestamp()) * 1_000_000 + value.microsecond


def test_phoenix_gives_the_trace_back_to_the_microsecond(tmp_path: Path, clock: Clock) -> None:
    command = os.environ.get("PHOENIX_COMMAND") or pytest.skip("PHOENIX_COMMAND is not set")
    with backends.phoenix(command, tmp_path) as url:
        exporter = OTLPSpanExporter(f"{url}/v1/traces")
        began, _ = send_a_call(exporter, clock, **{"openinference.project.name": "specclient"})

        def spans() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = ask(f"{url}/v1/projects/specclient/spans?limit=100")["data"]
            return found if len(found) == len(PLACES) else None

        found = {span["name"]: span for span in eventually(spans)}
    origin = began // 1000
    for name, (begin, end) in PLACES.items():
        span = found[name]
        assert microseconds(span["start_time"]) == origin + begin * 1000
        assert microseconds(span["end_time"]) == origin + end * 1000
    root = found["chat m"]
    assert root["span_kind"] == "LLM"
    assert root["attributes"]["llm.token_count.completion"] == 60
    assert root["attributes"]["specclient.prediction.accepted_tokens"] == 40
    for name in ("queue", "prefill", "decode"):
        assert found[name]["parent_id"] == root["context"]["span_id"]
        assert found[name]["span_kind"] != "LLM"


def test_mlflow_gives_the_trace_back_to_the_nanosecond(tmp_path: Path, clock: Clock) -> None:
    command = os.environ.get("MLFLOW_COMMAND") or pytest.skip("MLFLOW_COMMAND is not set")
    with backends.mlflow(command, tmp_path) as url:
        exporter = OTLPSpanExporter(f"{url}/v1/traces", headers={"x-mlflow-experiment-id": "0"})
        began, trace = send_a_call(exporter, clock)
        address = f"{url}/api/3.0/mlflow/traces/get?trace_id=tr-{trace}"
        found = eventually(lambda: {span["name"]: span for span in ask(address)["trace"]["spans"]})
    for name, (begin, end) in PLACES.items():
        assert int(found[name]["start_time_unix_nano"]) == began + begin * 10**6
        assert int(found[name]["end_time_unix_nano"]) == began + end * 10**6
