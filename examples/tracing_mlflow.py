"""See a call's waterfall in MLflow.

    pip install mlflow                                                       # in an environment of its own
    mlflow server --host 127.0.0.1 --port 5000 --backend-store-uri sqlite:///mlflow.db
    pip install '.[local,otel]'             # in a checkout
    python examples/tracing_mlflow.py

MLflow takes OTLP over HTTP; a header says which experiment the traces belong to. Its trace view has a
switch for the timeline.
"""

from __future__ import annotations

import argparse

from _backend import must_answer

import specclient

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example needs {missing.name}: in a checkout, pip install '.[local,otel]'"
    ) from None

KNOWN = "def total(prices):\n    return sum(price for price in prices)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mlflow", default="http://127.0.0.1:5000", help="address of the MLflow server")
    parser.add_argument("--experiment", default="0", help="id of the experiment")
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    arguments = parser.parse_args()
    must_answer(arguments.mlflow)

    exporter = OTLPSpanExporter(
        f"{arguments.mlflow}/v1/traces", headers={"x-mlflow-experiment-id": arguments.experiment}
    )
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracing = specclient.TracingOptions(tracer_provider=provider)

    chosen = {"target": arguments.target} if arguments.target else {"provider": "local"}
    with specclient.Client(**chosen, tracing=tracing) as client:
        answer = client.chat.completions.create(
            messages=[{"role": "user", "content": f"Rename total to amount. Answer with code.\n{KNOWN}"}],
            prediction=KNOWN,
            max_tokens=120,
        )
    print(answer.choices[0].message.content)
    provider.shutdown()
    print(f"see {arguments.mlflow}/#/experiments/{arguments.experiment}/traces")


if __name__ == "__main__":
    main()
