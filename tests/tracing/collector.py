"""Plain OTLP collectors on loopback, over HTTP and over gRPC: they keep the spans that they get."""

from __future__ import annotations

import gzip
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector:
    """`spans` are protobuf messages, `headers` those of the requests that brought them. `url` is the
    address for an exporter of the same protocol."""

    url: str
    base: str

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.headers: list[dict[str, str]] = []

    def take(self, request: Any, headers: dict[str, str]) -> Any:
        self.headers.append(headers)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return ExportTraceServiceResponse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class HttpCollector(Collector):
    """OTLP/HTTP with protobuf bodies."""

    def __init__(self) -> None:
        super().__init__()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = ExportTraceServiceResponse()
                if self.path.endswith("/v1/traces"):
                    answer = collector.take(ExportTraceServiceRequest.FromString(body), headers)
                content = answer.SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.base}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    """Takes metrics and keeps none."""

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
        return ExportMetricsServiceResponse()


class GrpcCollector(Collector, trace_service_pb2_grpc.TraceServiceServicer):
    """OTLP/gRPC. `base` is the address with a scheme, as the standard variables have it."""

    def __init__(self) -> None:
        super().__init__()
        self._server = grpc.server(futures.ThreadPoolExecutor(1))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(), self._server)
        self.url = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self.base = f"http://{self.url}"

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
        return self.take(request, dict(context.invocation_metadata()))

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()
