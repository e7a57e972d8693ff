"""Send a call's trace to any OTLP collector (Jaeger, Tempo, the OpenTelemetry Collector, …).

    pip install '.[local,otel]'             # in a checkout
    python examples/tracing_collector.py --endpoint http://127.0.0.1:4318

Over gRPC, with the exporter package for it:

    pip install opentelemetry-exporter-otlp-proto-grpc
    python examples/tracing_collector.py --grpc --endpoint http://127.0.0.1:4317

With --target a target of your configuration answers; without, the embedded engine does.
"""

from __future__ import annotations

import argparse
from typing import Any

from _backend import must_answer

import specclient

try:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example needs {missing.name}: in a checkout, pip install '.[local,otel]'"
    ) from None

KNOWN = "def total(prices):\n    return sum(price for price in prices)\n"


def exporters(endpoint: str, *, grpc: bool) -> tuple[Any, Any]:
    """Of spans and of metrics. Over HTTP the address has a path, over gRPC it has none."""
    if grpc:
        try:
            from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
                OTLPMetricExporter as GrpcMetrics,
            )
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
        except ModuleNotFoundError:
            raise SystemExit("--grpc needs: pip install opentelemetry-exporter-otlp-proto-grpc") from None

        return GrpcSpans(endpoint), GrpcMetrics(endpoint)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans

    return HttpSpans(f"{endpoint}/v1/traces"), HttpMetrics(f"{endpoint}/v1/metrics")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--endpoint", default="http://127.0.0.1:4318", help="base address of the collector")
    parser.add_argument("--grpc", action="store_true", help="OTLP over gRPC instead of HTTP")
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    arguments = parser.parse_args()
    must_answer(arguments.endpoint)

    spans, figures = exporters(arguments.endpoint, grpc=arguments.grpc)
    resource = Resource.create({"service.name": "specclient-example"})
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(spans))
    trace.set_tracer_provider(traces)
    reader = PeriodicExportingMetricReader(figures)
    metrics.set_meter_provider(MeterProvider([reader], resource=resource))

    chosen = {"target": arguments.target} if arguments.target else {"provider": "local"}
    with specclient.Client(**chosen) as client, trace.get_tracer("example").start_as_current_span("edit"):
        stream = client.chat.completions.create(
            messages=[{"role": "user", "content": f"Rename total to amount. Answer with code.\n{KNOWN}"}],
            prediction=KNOWN,
            max_tokens=120,
            stream=True,
        )
        for chunk in stream:
            if chunk.choices:
                print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()
    traces.shutdown()
    metrics.get_meter_provider().shutdown()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
