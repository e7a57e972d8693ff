"""Who learns the trace's id.

Only the W3C trace-context propagator writes headers, named explicitly: the global propagator normally
carries baggage too, and would hand the application's own data to third parties.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from random import getrandbits
from typing import Literal

from opentelemetry.context import Context
from opentelemetry.trace import Span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_W3C = TraceContextTextMapPropagator()
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal")


@lru_cache(maxsize=256)
def is_private(host: str | None) -> bool:
    """Whether a host is on this machine or in a private network, by its name alone.

    Loopback and private addresses, names without a dot (they resolve on the spot only), and the suffixes
    reserved for private use.
    """
    if not host:
        return False
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return "." not in host or host.lower().endswith(_PRIVATE_SUFFIXES)
    return address.is_private or address.is_loopback


def inject(
    headers: MutableMapping[str, str],
    span: Span,
    policy: Literal["self_hosted", "always", "never"],
    *,
    self_hosted: bool,
) -> None:
    """Add `traceparent` (and `tracestate` where there is one) as the policy says; never baggage.

    A header that the caller has set stays.
    """
    if policy == "never" or (policy == "self_hosted" and not self_hosted):
        return
    if not span.get_span_context().is_valid or any(name.lower() == "traceparent" for name in headers):
        return
    _W3C.inject(headers, set_span_in_context(span, Context()))


def request_id(span: Span, attempt: int) -> str:
    """A name for one try of a call: its span's ids where there is one, so that a server's log leads to the
    trace, and random ones otherwise. Servers refuse a name that is in use, so no two tries share one.
    """
    context = span.get_span_context()
    if not context.is_valid:
        return f"{getrandbits(128):032x}"
    return f"{context.trace_id:032x}-{context.span_id:016x}-{attempt}"


def extract(headers: Mapping[str, str]) -> Context:
    """The caller's trace context from request headers (any case); an empty one if there is none."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return _W3C.extract(lowered, Context())
