"""One span a call, and where its time went.

`start_call` begins a call, `Call.finish` ends it, `Finaliser` sees to it that a stream ends exactly once.
Needs opentelemetry-api only, and costs microseconds while no SDK is configured.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specclient.core.stamps import EnginePhases as EnginePhases
    from specclient.core.timeline import Timeline as Timeline
    from specclient.tracing.call import Call as Call
    from specclient.tracing.call import Unheard as Unheard
    from specclient.tracing.call import start_call as start_call
    from specclient.tracing.facts import CallStart as CallStart
    from specclient.tracing.facts import ResponseFacts as ResponseFacts
    from specclient.tracing.finaliser import CallOutcome as CallOutcome
    from specclient.tracing.finaliser import Finaliser as Finaliser
    from specclient.tracing.finaliser import outcome_of as outcome_of
    from specclient.tracing.group import Group as Group
    from specclient.tracing.group import start_group as start_group
    from specclient.tracing.options import DEFAULT_OPTIONS as DEFAULT_OPTIONS
    from specclient.tracing.options import TracingOptions as TracingOptions
    from specclient.tracing.propagation import extract as extract
    from specclient.tracing.server import ServerSpan as ServerSpan
    from specclient.tracing.server import start_server as start_server

_ROOMS = {
    "specclient.core.stamps": "EnginePhases",
    "specclient.core.timeline": "Timeline",
    "specclient.tracing.call": "Call Unheard start_call",
    "specclient.tracing.facts": "CallStart ResponseFacts",
    "specclient.tracing.finaliser": "CallOutcome Finaliser outcome_of",
    "specclient.tracing.group": "Group start_group",
    "specclient.tracing.options": "DEFAULT_OPTIONS TracingOptions",
    "specclient.tracing.propagation": "extract",
    "specclient.tracing.server": "ServerSpan start_server",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [*sorted(_HOME)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """A name from its room, at first use: a client's options are read long before its first span."""
    if name == "export":  # needs the SDK of OpenTelemetry
        return importlib.import_module("specclient.tracing.export")
    if name not in _HOME:
        raise AttributeError(f"module 'specclient.tracing' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
