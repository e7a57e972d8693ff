"""Living with other instrumentations of the same call.

The official GenAI instrumentations agree among themselves through a key in the context: whoever holds it
with an `InferenceData` owns the call, and an inner instrumentation stays silent and publishes what it
learns into that object. Nothing of theirs is imported unless the application already has.
"""

from __future__ import annotations

import sys
from typing import Any

from opentelemetry.context import Context, get_value, set_value

KEY = "opentelemetry.genai.client.inference.context"


def _inference_data() -> type[Any] | None:
    module = sys.modules.get("opentelemetry.util.genai.invocation")
    found = getattr(module, "InferenceData", None)
    return found if isinstance(found, type) else None


def owned_elsewhere() -> bool:
    """Whether another instrumentation has a span open for the current call."""
    kind = _inference_data()
    return kind is not None and isinstance(get_value(KEY), kind)


def claim(context: Context) -> Context:
    """`context` with the call marked as ours, where an official instrumentation is loaded."""
    kind = _inference_data()
    return context if kind is None else set_value(KEY, kind(), context)
