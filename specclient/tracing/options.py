"""How calls are traced: one object a client, read once."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

from opentelemetry import trace
from opentelemetry._logs import LoggerProvider
from opentelemetry.context import Context, get_current
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, Tracer, TracerProvider
from opentelemetry.util.types import Attributes

from specclient._version import __version__
from specclient.errors import ConfigError
from specclient.tracing.metrics import Instruments

SCOPE = "specclient"
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPT_IN_VARIABLE = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST = "gen_ai_latest_experimental"

_PARENT = trace.NonRecordingSpan(trace.SpanContext(1, 1, is_remote=True))
_PASSES_ON = trace.NoOpTracer().start_span("", trace.set_span_in_context(_PARENT)).get_span_context().is_valid
"""Whether this version of the API does by itself what `TracingOptions.open` promises."""

log = logging.getLogger(__name__)

Telemetry = Literal["on", "enrich", "off"]
Phases = Literal["reported", "all", "none"]
Propagate = Literal["self_hosted", "always", "never"]
ContentMode = Literal["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"]

_CHOICES: dict[str, tuple[Any, ...]] = {
    "telemetry": get_args(Telemetry),
    "phases": get_args(Phases),
    "propagate": get_args(Propagate),
    "capture_content": (*get_args(ContentMode), None),
}
_PROVIDERS = {"tracer_provider": "get_tracer", "meter_provider": "get_meter", "logger_provider": "get_logger"}


@dataclass(frozen=True, eq=False, kw_only=True)
class TracingOptions:
    """What to trace and what to tell whom.

    `telemetry`: "on" opens a span for each call; "enrich" opens none and writes onto the caller's current
    span instead, for applications whose other instrumentation already has one; "off" does nothing.
    `phases`: "reported" draws queue, prefill and decode when a server or the engine reported them; "all"
    also draws what only the client's stopwatch saw, under other names; "none" draws nothing.
    `propagate`: who gets a `traceparent`. `capture_content` overrides the standard variable
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT. The aliases repeat values under names that
    particular backends read. Raises ConfigError for a value that an option cannot have.
    """

    telemetry: Telemetry = "on"
    phases: Phases = "reported"
    propagate: Propagate = "self_hosted"
    capture_content: ContentMode | None = None
    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None
    logger_provider: LoggerProvider | None = None
    latency_aliases: bool = True
    usage_aliases: bool = False
    cache_creation_alias: bool = False
    langfuse_alias: bool = False
    openinference_alias: bool = False

    def __post_init__(self) -> None:
        for option in fields(self):
            if (said := what_is_wrong(option.name, getattr(self, option.name))) is not None:
                raise ConfigError(f"TracingOptions: {option.name}: {said}.")

    @cached_property
    def tracer(self) -> Tracer:
        """A proxy until the application sets a provider, then the real thing."""
        return trace.get_tracer(SCOPE, __version__, self.tracer_provider)

    def open(
        self,
        name: str,
        context: Context | None,
        kind: SpanKind,
        attributes: Attributes,
        start_time: int,
    ) -> Span:
        """A started span. Without an SDK it stands for its parent, so that a caller's trace is passed on."""
        span = self.tracer.start_span(name, context, kind, attributes, start_time=start_time)
        if _PASSES_ON or span.get_span_context().is_valid:
            return span
        parent = trace.get_current_span(context).get_span_context()
        return trace.NonRecordingSpan(parent) if parent.is_valid else span

    @property
    def heard(self) -> bool:
        """Whether anybody could learn of a call that begins here and now.

        A context that holds anything may hold a parent, whose trace is passed on without an SDK too.
        """
        if self.telemetry == "off":
            return False
        if get_current():
            return True
        tracer = self.tracer
        return type(getattr(tracer, "_tracer", tracer)) is not trace.NoOpTracer or self.instruments.active

    @cached_property
    def instruments(self) -> Instruments:
        wanted = os.environ.get(OPT_IN_VARIABLE, "")
        latest = LATEST in {part.strip() for part in wanted.split(",")}
        return Instruments(self.meter_provider, latest=latest)

    @cached_property
    def content(self) -> ContentMode:
        """Whose content goes where; an unknown value of the variable means none at all, and is told.

        It is no error: other instrumentations read the same variable, and older ones take true and false.
        """
        if self.capture_content is not None:
            return self.capture_content
        value = os.environ.get(CONTENT_VARIABLE, "").strip().upper()
        if value == "SPAN_ONLY":
            return "SPAN_ONLY"
        if value == "EVENT_ONLY":
            return "EVENT_ONLY"
        if value == "SPAN_AND_EVENT":
            return "SPAN_AND_EVENT"
        if value not in ("", "NO_CONTENT", "FALSE"):
            modes = " or ".join(get_args(ContentMode))
            log.warning("%s: %s is expected; no content is recorded.", CONTENT_VARIABLE, modes)
        return "NO_CONTENT"


def what_is_wrong(option: str, value: object) -> str | None:
    """The clause that says why an option cannot have this value, or None where it can."""
    if option in _CHOICES:
        choices = _CHOICES[option]
        return None if value in choices else f"{_listed(choices)} is expected, not {_shown(value)}"
    if option in _PROVIDERS:
        method = _PROVIDERS[option]
        if value is None or (not isinstance(value, type) and callable(getattr(value, method, None))):
            return None
        return f"an object with {method}() or None is expected, not {_shown(value)}"
    return None if isinstance(value, bool) else f"True or False is expected, not {_shown(value)}"


def _listed(choices: tuple[Any, ...]) -> str:
    *others, last = (str(choice) for choice in choices)
    return f"{', '.join(others)} or {last}"


def _shown(value: object) -> str:
    """A value that may be shown: of anything that is not a word or a number, only what it is."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else type(value).__name__


DEFAULT_OPTIONS = TracingOptions()
