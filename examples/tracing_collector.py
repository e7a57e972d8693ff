"""Send a call's trace to any OTLP collector (Jaeger, Tempo, the OpenTelemetry Collector, …).

    pip install 'specclient[local,otel]'
    python examples/tracing_collector.py --endpoint http://127.0.0.1:4318

With --target a target of your configuration answers; without, the embedded engine does.
"""

from __future__ import annotations

import argparse

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import specclient

KNOWN = "def total(prices):\n    return sum(price for price in prices)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--endpoint", default="http://127.0.0.1:4318", help="base address of the collector")
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    arguments = parser.parse_args()

    resource = Resource.create({"service.name": "specclient-example"})
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{arguments.endpoint}/v1/traces")))
    trace.set_tracer_provider(traces)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{arguments.endpoint}/v1/metrics"))
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
