"""What tracing costs a call and a chunk: without an SDK, unsampled, and recording into a null exporter.

    python benchmarks/tracing_cost.py

Processor time, the least of several repeats: other load on the machine adds to wall time, not to this.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from specclient.report import Phase, Report
from specclient.tracing import CallStart, ResponseFacts, Timeline, TracingOptions, start_call

REPEATS = 9
BODY = {"model": "m", "temperature": 0.2, "max_tokens": 512, "stream": True}
FACTS = ResponseFacts(
    id="r", model="m", finish_reasons=("stop",), input_tokens=900, output_tokens=600, cached_tokens=0
)


class Reading:
    queue = Phase(seconds=1e-9, source="server")
    prefill = Phase(seconds=1e-9, source="server")
    decode = Phase(seconds=1e-9, source="server")


class Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return SpanExportResult.SUCCESS


def microseconds(what: Callable[[], object], number: int = 5000) -> float:
    times = timeit.repeat(what, number=number, repeat=REPEATS, timer=time.process_time)
    return min(times) / number * 1e6


def call_with(options: TracingOptions) -> Callable[[], None]:
    timeline = Timeline()
    timeline.content()
    time.sleep(0.001)
    timeline.frame()
    timeline.content()
    timing = timeline.timing(Reading(), streamed=True)
    report = Report(target="t", provider="p", model="m", timing=timing)

    def call() -> None:
        started = start_call(
            CallStart(provider="p", model="m", server_address="h", server_port=443, stream=True, body=BODY),
            options,
        )
        with started.current():
            pass
        started.finish(report, FACTS)

    return call


def main() -> None:
    timeline = Timeline()

    def chunk() -> None:
        timeline.frame()
        timeline.content()

    dropping = TracerProvider(sampler=ALWAYS_OFF)
    recording = TracerProvider()
    recording.add_span_processor(BatchSpanProcessor(Nowhere(), max_queue_size=1 << 16))
    rows = [
        ("call, no SDK", microseconds(call_with(TracingOptions()))),
        ("call, SDK, not sampled", microseconds(call_with(TracingOptions(tracer_provider=dropping)))),
        (
            "call, SDK, recording 4 spans",
            microseconds(call_with(TracingOptions(tracer_provider=recording)), 500),
        ),
        ("chunk", microseconds(chunk)),
    ]
    for name, value in rows:
        print(f"{name:32}{value:8.2f} µs")
    recording.shutdown()


if __name__ == "__main__":
    main()
