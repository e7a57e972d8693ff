"""What every endpoint documents about predictions, speculation, counters and timings, with sources.

facts = resolve("azure", model="gpt-4o", api_version="2025-01-01-preview", base_url="https://…")
facts.prediction.supported, facts.prediction.claim.source
"""

from specclient_providers.answers import AnswerReader, Measure, Reading, Usage
from specclient_providers.endpoint import Claim, Endpoint, EndpointFacts, PredictionFacts
from specclient_providers.errors import OverrideError, UnknownProvider
from specclient_providers.refusal import refuses, refuses_prediction
from specclient_providers.registry import provider_at, provider_names, register, unregister
from specclient_providers.resolve import resolve

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
