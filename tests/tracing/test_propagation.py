"""Who learns the trace's id: by policy, by the W3C header only, and never baggage."""

from __future__ import annotations

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind
from tracing_helpers import Backend

from specclient.tracing import CallStart, extract, start_call, start_server


@pytest.mark.parametrize(
    ("policy", "self_hosted", "told"),
    [
        ("self_hosted", True, True),
        ("self_hosted", False, False),
        ("always", True, True),
        ("always", False, True),
        ("never", True, False),
        ("never", False, False),
    ],
)
def test_the_policy_decides(backend: Backend, policy: str, self_hosted: bool, told: bool) -> None:
    call = start_call(CallStart(provider="p"), backend.options(propagate=policy))
    headers: dict[str, str] = {}
    token = context.attach(baggage.set_baggage("customer", "secret"))
    try:
        call.inject(headers, self_hosted=self_hosted)
    finally:
        context.detach(token)
    call.finish()
    assert list(headers) == (["traceparent"] if told else [])
    if told:
        span = call.span.get_span_context()
        assert headers["traceparent"] == f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("10.1.2.3", True),
        ("192.168.0.9", True),
        ("localhost", True),
        ("vllm", True),
        ("gpu.internal", True),
        ("Box.LOCAL", True),
        ("8.8.8.8", False),
        ("api.openai.com", False),
        ("internal.example.com", False),
        (None, False),
    ],
)
def test_a_private_address_is_near(backend: Backend, host: str | None, near: bool) -> None:
    call = start_call(CallStart(provider="p", server_address=host), backend.options())
    headers: dict[str, str] = {}
    call.inject(headers, self_hosted=False)
    call.finish()
    assert bool(headers) is near


def test_the_targets_policy_comes_first(backend: Backend) -> None:
    call = start_call(CallStart(provider="p"), backend.options(propagate="always"))
    headers: dict[str, str] = {}
    call.inject(headers, True, "never")
    assert headers == {}
    call = start_call(CallStart(provider="p"), backend.options(propagate="never"))
    call.inject(headers, False, "always")
    assert list(headers) == ["traceparent"]


def test_a_header_of_the_caller_stays(backend: Backend) -> None:
    call = start_call(CallStart(provider="p"), backend.options(propagate="always"))
    headers = {"TraceParent": "theirs"}
    call.inject(headers, self_hosted=True)
    call.finish()
    assert headers == {"TraceParent": "theirs"}


def test_a_server_that_takes_a_name_learns_the_spans_ids(backend: Backend) -> None:
    call = start_call(CallStart(provider="vllm"), backend.options())
    names = []
    for _ in range(2):
        headers: dict[str, str] = {}
        call.inject(headers, self_hosted=True, id_header="x-request-id")
        names.append(headers["x-request-id"])
    span = call.span.get_span_context()
    assert names == [f"{span.trace_id:032x}-{span.span_id:016x}-{number}" for number in (1, 2)]


def test_without_a_span_the_name_is_a_random_one(backend: Backend) -> None:
    names = set()
    for _ in range(50):
        headers: dict[str, str] = {}
        call = start_call(CallStart(provider="vllm"), backend.options(telemetry="off"))
        call.inject(headers, self_hosted=True, id_header="x-request-id")
        names.add(headers["x-request-id"])
    assert len(names) == 50
    assert {len(name) for name in names} == {32}


def test_never_means_no_name_either(backend: Backend) -> None:
    headers: dict[str, str] = {}
    call = start_call(CallStart(provider="vllm"), backend.options(propagate="never"))
    call.inject(headers, self_hosted=True, id_header="x-request-id")
    assert headers == {}


def test_a_served_request_joins_the_callers_trace(backend: Backend) -> None:
    client = start_call(CallStart(provider="specclient", model="a"), backend.options())
    headers: dict[str, str] = {}
    client.inject(headers, self_hosted=True)
    served = start_server(
        {"TRACEPARENT": headers["traceparent"]}, method="POST", route="/v1/x", options=backend.options()
    )
    inner = start_call(CallStart(provider="p", model="b"), backend.options(), parent=served.context)
    inner.finish()
    served.finish(200)
    served.finish(500)
    client.finish()
    a, post, b = backend.span("chat a"), backend.span("POST /v1/x"), backend.span("chat b")
    assert post.parent.span_id == a.context.span_id
    assert post.kind is SpanKind.SERVER
    assert post.attributes["http.response.status_code"] == 200
    assert b.parent == post.context
    assert a.context.trace_id == b.context.trace_id


@pytest.mark.parametrize(
    ("status", "outcome", "error_type"),
    [(503, "completed", "503"), (400, "completed", None), (200, "cancelled", "_OTHER")],
)
def test_a_served_fault_is_one(backend: Backend, status: int, outcome: str, error_type: str | None) -> None:
    start_server({}, method="POST", route="/v1/x", options=backend.options()).finish(status, outcome)
    assert backend.span("POST /v1/x").attributes.get("error.type") == error_type


def test_no_second_server_span_under_the_applications_own(backend: Backend) -> None:
    with backend.tracer_provider.get_tracer("asgi").start_as_current_span("POST /v1/x"):
        served = start_server({}, method="POST", route="/v1/x", options=backend.options())
        assert served.context is None
        served.finish(200)
    assert backend.names() == ["POST /v1/x"]


def test_a_broken_header_starts_a_trace_of_its_own(backend: Backend) -> None:
    assert not trace.get_current_span(extract({"traceparent": "nonsense"})).get_span_context().is_valid
