"""The embedded engine: lossless speculative decoding from known text, in this process.

Importing the package needs nothing beside the standard library; using `Engine` needs the `local` extra,
and torch is loaded by `Engine.load`.
"""

from typing import TYPE_CHECKING, Any

from specclient_engine.api import GenerationRequest, GenerationStats, Progress, SamplingParams, Step

if TYPE_CHECKING:
    from specclient_engine.engine import Engine
    from specclient_engine.handle import Handle

__all__ = [
    "Engine",
    "GenerationRequest",
    "GenerationStats",
    "Handle",
    "Progress",
    "SamplingParams",
    "Step",
]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from specclient_engine.engine import Engine

        return Engine
    if name == "Handle":
        from specclient_engine.handle import Handle

        return Handle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
