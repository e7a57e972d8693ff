"""With opentelemetry-api alone: no error, no warning, microseconds; a provider set later starts recording."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import sys, warnings
warnings.simplefilter("error")

class NoSDK:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] == ["opentelemetry", "sdk"] or name.startswith("opentelemetry.util.genai"):
            raise ModuleNotFoundError(name)

if "--without" in sys.argv:
    sys.meta_path.insert(0, NoSDK())

from specclient.report import Report
from specclient.tracing import CallStart, ResponseFacts, start_call

REPORT, FACTS = Report(target="t", provider="p", model="m"), ResponseFacts(output_tokens=3)

def one():
    call = start_call(CallStart(provider="p", model="m", stream=True, body={"temperature": 1}))
    call.inject({}, self_hosted=True)
    with call.current():
        pass
    call.finish(REPORT, FACTS)
    return call
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_call_without_an_sdk() -> None:
    code = """
    call = one()
    headers = {}
    call.inject(headers, self_hosted=True)
    print(headers, call.span.is_recording(), call.timeline.ended is not None)
    assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
    """
    assert run(code, "--without") == "{} False True"


def test_a_callers_trace_goes_through_without_an_sdk() -> None:
    """An application that only passes headers on still gets its trace passed on."""
    code = """
    from specclient.tracing import extract
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    parent = extract({"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"})
    call = start_call(CallStart(provider="p"), parent=parent)
    headers = {}
    call.inject(headers, self_hosted=True)
    call.finish(REPORT, FACTS)
    print(headers["traceparent"].split("-")[1] == trace_id)
    """
    assert run(code, "--without") == "True"


def test_a_served_trace_goes_through_without_an_sdk() -> None:
    code = """
    from specclient.tracing import start_server
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    served = start_server(headers, method="POST", route="/v1")
    call = start_call(CallStart(provider="p"), parent=served.context)
    onward = {}
    call.inject(onward, self_hosted=True)
    call.finish(REPORT, FACTS)
    served.finish(200)
    print(onward == headers)
    """
    assert run(code, "--without") == "True"


def test_a_provider_set_later_starts_recording() -> None:
    pytest.importorskip("opentelemetry.sdk")
    code = """
    one()
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    one()
    (span,) = spans.get_finished_spans()
    print(span.name, "gen_ai.client.operation.duration" in reader.get_metrics_data().to_json())
    """
    assert run(code) == "chat m True"


def test_the_cost_without_an_sdk() -> None:
    """The promise is 5 µs a call and 0.2 µs a chunk; the bound leaves room for a busy machine."""
    code = """
    import timeit
    from specclient.core.timeline import Timeline
    line = Timeline()
    def chunk():
        line.frame()
        line.content()
    call = min(timeit.repeat(one, number=2000, repeat=7)) / 2000
    chunk = min(timeit.repeat(chunk, number=2000, repeat=7)) / 2000
    assert call < 50e-6, call
    assert chunk < 2e-6, chunk
    """
    run(code, "--without")
