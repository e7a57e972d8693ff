"""Clocks that only a test moves, and an in-memory place for its spans and metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from specclient.core.timeline import Timeline
from specclient.report import Phase, Report
from specclient.tracing import CallStart, TracingOptions


@dataclass
class Clock:
    """A monotonic clock that only the test moves, in milliseconds, and a wall clock that can jump."""

    now: int = 5_000_000_000
    wall_now: int = 1_800_000_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: float) -> None:
        self.now += round(milliseconds * 1e6)

    def wall(self) -> int:
        return self.wall_now

    def timeline(self) -> Timeline:
        return Timeline(clock=self, wall=self.wall)


@dataclass
class Backend:
    """Where the spans and metrics of one test go."""

    spans: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    metrics: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.meter_provider = MeterProvider([self.metrics])

    def options(self, **rest: object) -> TracingOptions:
        return TracingOptions(
            tracer_provider=self.tracer_provider,
            meter_provider=self.meter_provider,
            **rest,  # type: ignore[arg-type]
        )

    def finished(self) -> tuple[ReadableSpan, ...]:
        return self.spans.get_finished_spans()

    def names(self) -> list[str]:
        return sorted(span.name for span in self.finished())

    def span(self, name: str) -> ReadableSpan:
        (found,) = (span for span in self.finished() if span.name == name)
        return found

    def points(self) -> dict[str, list[HistogramDataPoint | NumberDataPoint]]:
        data = self.metrics.get_metrics_data()
        found: dict[str, list[HistogramDataPoint | NumberDataPoint]] = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = list(metric.data.data_points)
        return found


class Reading:
    """What an endpoint said of its time."""

    queue = Phase(seconds=0.1, source="server")
    prefill = Phase(seconds=0.2, source="server")
    decode = Phase(seconds=0.6, source="derived")
    time_to_first_token = Phase(seconds=0.3, source="server")
    server_total = Phase(seconds=0.91, source="server")
    ttft_includes_queue = True


def stream(clock: Clock, timeline: Timeline) -> None:
    """Role frame after 305 ms, content after 405 and 1005 ms."""
    timeline.attempt_started()
    clock.advance(5)
    timeline.sent()
    clock.advance(200)
    timeline.headers()
    clock.advance(100)
    timeline.frame()
    clock.advance(100)
    timeline.frame()
    timeline.content()
    clock.advance(600)
    timeline.frame()
    timeline.content()
    timeline.done()


def report_of(timeline: Timeline, reading: Any = None, **rest: Any) -> Report:
    return Report(
        target="prod",
        provider="fireworks",
        model="m",
        timing=timeline.timing(reading, streamed=True),
        **rest,
    )


def start(timeline: Timeline, **rest: Any) -> CallStart:
    given: dict[str, Any] = {"provider": "fireworks", "model": "m", "stream": True, "timeline": timeline}
    return CallStart(**{**given, **rest})
