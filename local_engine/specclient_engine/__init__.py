"""The embedded engine: lossless speculative decoding from known text, in this process.

Importing the package loads neither torch nor transformers; `Engine.load` does.
"""

from specclient_engine.api import GenerationRequest, GenerationStats, Progress, SamplingParams, Step
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
