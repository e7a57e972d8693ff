"""One span a call, and where its time went.

`start_call` begins a call, `Call.finish` ends it, `Finaliser` sees to it that a stream ends exactly once.
Needs opentelemetry-api only, and costs microseconds while no SDK is configured.
"""

from specclient.core.timeline import EnginePhases, Timeline
from specclient.tracing.call import Call, CallStart, ResponseFacts, start_call
from specclient.tracing.finaliser import CallOutcome, Finaliser, outcome_of
from specclient.tracing.group import Group, start_group
from specclient.tracing.options import DEFAULT_OPTIONS, TracingOptions
from specclient.tracing.propagation import extract
from specclient.tracing.server import ServerSpan, start_server

__all__ = [
    "DEFAULT_OPTIONS",
    "Call",
    "CallOutcome",
    "CallStart",
    "EnginePhases",
    "Finaliser",
    "Group",
    "ResponseFacts",
    "ServerSpan",
    "Timeline",
    "TracingOptions",
    "extract",
    "outcome_of",
    "start_call",
    "start_group",
    "start_server",
]
