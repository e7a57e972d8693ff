"""See a call's queue, prefill and decode in Arize Phoenix.

    pip install arize-phoenix && PHOENIX_HOST=127.0.0.1 phoenix serve        # in an environment of its own
    pip install '.[local,otel]'             # in a checkout
    python examples/tracing_phoenix.py

Phoenix reads the GenAI attributes as they are: model, token counts and the kind of the call's span. The
project is chosen by a resource attribute.
"""

from __future__ import annotations

import argparse

from _backend import must_answer

import specclient

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example needs {missing.name}: in a checkout, pip install '.[local,otel]'"
    ) from None

KNOWN = "def total(prices):\n    return sum(price for price in prices)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--phoenix", default="http://127.0.0.1:6006", help="address of Phoenix")
    parser.add_argument("--project", default="specclient")
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    arguments = parser.parse_args()
    must_answer(arguments.phoenix)

    provider = TracerProvider(resource=Resource.create({"openinference.project.name": arguments.project}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{arguments.phoenix}/v1/traces")))
    # openinference_alias marks the phases as CHAIN, which Phoenix shows with an icon of their own.
    tracing = specclient.TracingOptions(tracer_provider=provider, openinference_alias=True)

    chosen = {"target": arguments.target} if arguments.target else {"provider": "local"}
    with specclient.Client(**chosen, tracing=tracing) as client:
        answer = client.chat.completions.create(
            messages=[{"role": "user", "content": f"Rename total to amount. Answer with code.\n{KNOWN}"}],
            prediction=KNOWN,
            max_tokens=120,
        )
    print(answer.choices[0].message.content)
    provider.shutdown()
    print(f"see {arguments.phoenix}/projects")


if __name__ == "__main__":
    main()
