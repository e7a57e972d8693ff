"""What every endpoint documents about predictions, speculation, counters and timings, with sources.

facts = resolve("azure", model="gpt-4o", api_version="2025-01-01-preview", base_url="https://…")
facts.prediction.supported, facts.prediction.claim.source
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from specclient_providers.endpoint import Claim, Endpoint, EndpointFacts, PredictionFacts
from specclient_providers.errors import OverrideError, UnknownProvider
from specclient_providers.registry import provider_at, provider_names, register, unregister
from specclient_providers.resolve import resolve

if TYPE_CHECKING:
    from specclient_providers.answers import AnswerReader as AnswerReader
    from specclient_providers.reading import Measure as Measure
    from specclient_providers.reading import Reading as Reading
    from specclient_providers.reading import Usage as Usage
    from specclient_providers.refusal import refuses as refuses
    from specclient_providers.refusal import refuses_prediction as refuses_prediction

_LATER = {
    "AnswerReader": "specclient_providers.answers",
    **dict.fromkeys(("Measure", "Reading", "Usage"), "specclient_providers.reading"),
    **dict.fromkeys(("refuses", "refuses_prediction"), "specclient_providers.refusal"),
}
"""What only an answer needs, and where it is: facts alone are read without."""

__all__ = [
    "AnswerReader",
    "Claim",
    "Endpoint",
    "EndpointFacts",
    "Measure",
    "OverrideError",
    "PredictionFacts",
    "Reading",
    "UnknownProvider",
    "Usage",
    "provider_at",
    "provider_names",
    "refuses",
    "refuses_prediction",
    "register",
    "resolve",
    "unregister",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'specclient_providers' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value
