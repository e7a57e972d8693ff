"""On the wire: a plain OTLP collector gets what we meant, to the nanosecond."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from collector import Collector, GrpcCollector, HttpCollector
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from tracing_helpers import Backend, Clock

from specclient.report import Phase, Report
from specclient.tracing import CallStart, start_call


class Reading:
    prefill = Phase(seconds=0.030000001, source="server")
    decode = Phase(seconds=0.02, source="server")


@pytest.fixture(params=[HttpCollector, GrpcCollector], ids=["http", "grpc"])
def collector(request: pytest.FixtureRequest) -> Iterator[Collector]:
    with request.param() as collector:
        yield collector


def exporter_for(collector: Collector) -> SpanExporter:
    if isinstance(collector, GrpcCollector):
        return GrpcExporter(collector.url, insecure=True)
    return HttpExporter(collector.url)


def test_nanoseconds_survive(collector: Collector, clock: Clock) -> None:
    exporter = exporter_for(collector)
    backend = Backend()
    backend.tracer_provider = TracerProvider()
    backend.tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    clock.wall_now += 123
    call = start_call(
        CallStart(provider="groq", model="m", stream=True, timeline=clock.timeline()), backend.options()
    )
    for milliseconds in (40, 20):
        clock.advance(milliseconds)
        call.timeline.frame()
        call.timeline.content()
    timing = call.timeline.timing(Reading(), streamed=True)
    call.finish(Report(target="t", provider="groq", model="m", timing=timing))
    backend.tracer_provider.shutdown()

    spans = {span.name: span for span in collector.spans}
    root, prefill, decode = spans["chat m"], spans["prefill"], spans["decode"]
    assert root.start_time_unix_nano == clock.wall_now
    assert root.end_time_unix_nano == clock.wall_now + 60_000_000
    assert prefill.end_time_unix_nano - prefill.start_time_unix_nano == 30_000_001
    assert prefill.end_time_unix_nano == decode.start_time_unix_nano == clock.wall_now + 40_000_000
    assert prefill.parent_span_id == root.span_id
    assert root.kind == root.SPAN_KIND_CLIENT
