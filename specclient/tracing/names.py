"""Names of attributes, and the tables that say which value goes under which name.

The GenAI conventions live in open-telemetry/semantic-conventions-genai (status Development) and the
constants of the Python package are all marked as moved, so the names are kept here, checked against
`docs/gen-ai/client-inference.md` at commit 024a4f94. A table row is (attribute, kind, path): the path
leads through dictionaries and attributes of one of the roots `start`, `body`, `facts`, `report`, `stamps`
and `derived`. A path that ends nowhere, and a value of the wrong type, set nothing.

Own names are under `specclient.`; nothing is invented under `gen_ai.request.` or `gen_ai.usage.`, which
some backends sum up or turn into parameters wholesale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

AttributeValue = str | bool | int | float | tuple[str, ...]
Kind = Literal["string", "int", "double", "bool", "strings"]
Row = tuple[str, Kind, str]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
FINISH_REASONS = "gen_ai.response.finish_reasons"
PHASE = "specclient.phase"
TIMING_SOURCE = "specclient.timing.source"

REQUEST: tuple[Row, ...] = (
    ("gen_ai.request.stream", "bool", "derived.stream"),
    ("gen_ai.request.seed", "int", "body.seed"),
    ("gen_ai.request.choice.count", "int", "derived.choice_count"),
    ("gen_ai.request.top_k", "int", "body.top_k"),
    ("gen_ai.request.max_tokens", "int", "derived.max_tokens"),
    ("gen_ai.request.temperature", "double", "body.temperature"),
    ("gen_ai.request.top_p", "double", "body.top_p"),
    ("gen_ai.request.frequency_penalty", "double", "body.frequency_penalty"),
    ("gen_ai.request.presence_penalty", "double", "body.presence_penalty"),
    ("gen_ai.request.stop_sequences", "strings", "body.stop"),
    ("gen_ai.request.reasoning.level", "string", "body.reasoning_effort"),
    ("gen_ai.output.type", "string", "derived.output_type"),
    ("openai.request.service_tier", "string", "derived.openai.service_tier"),
    ("specclient.capability.prediction", "string", "start.capability"),
    ("specclient.target", "string", "start.target"),
    ("specclient.workload", "string", "start.workload"),
    ("specclient.prediction.chars", "int", "start.prediction_chars"),
)

RESPONSE: tuple[Row, ...] = (
    ("gen_ai.response.id", "string", "facts.id"),
    (RESPONSE_MODEL, "string", "derived.response_model"),
    (FINISH_REASONS, "strings", "derived.finish_reasons"),
    (TIME_TO_FIRST_CHUNK, "double", "report.timing.client.first_frame"),
    ("gen_ai.usage.input_tokens", "int", "facts.input_tokens"),
    ("gen_ai.usage.output_tokens", "int", "facts.output_tokens"),
    ("gen_ai.usage.cache_read.input_tokens", "int", "facts.cached_tokens"),
    ("gen_ai.usage.cache_write.input_tokens", "int", "facts.cache_write_tokens"),
    ("gen_ai.usage.reasoning.output_tokens", "int", "facts.reasoning_tokens"),
    ("openai.response.service_tier", "string", "derived.openai.response_service_tier"),
    ("openai.response.system_fingerprint", "string", "derived.openai.system_fingerprint"),
)

PREDICTION: tuple[Row, ...] = (
    ("specclient.prediction.tokens", "int", "derived.prediction_tokens"),
    ("specclient.prediction.requested", "bool", "derived.requested"),
    ("specclient.prediction.sent", "bool", "derived.sent"),
    ("specclient.prediction.outcome", "string", "report.prediction.outcome"),
    ("specclient.prediction.effect", "string", "derived.effect"),
    ("specclient.prediction.withheld_reason", "string", "derived.withheld_reason"),
    ("specclient.prediction.accepted_tokens", "int", "report.prediction.accepted_tokens"),
    ("specclient.prediction.rejected_tokens", "int", "report.prediction.rejected_tokens"),
    ("specclient.prediction.acceptance_rate", "double", "report.prediction.acceptance_rate"),
    ("specclient.prediction.extra_billed_tokens", "int", "report.prediction.extra_billed_tokens"),
    ("specclient.prediction.counts_source", "string", "derived.counts_source"),
    ("specclient.speculation.steps", "int", "report.speculation.forward_passes"),
    ("specclient.speculation.draft_tokens", "int", "derived.draft_tokens"),
    ("specclient.speculation.accepted_draft_tokens", "int", "report.speculation.accepted_draft_tokens"),
    ("specclient.speculation.mean_acceptance_length", "double", "report.speculation.mean_acceptance_length"),
    ("specclient.speculation.draft_sources", "strings", "derived.draft_sources"),
    ("specclient.speculation.held_back_tokens", "int", "report.speculation.held_back_tokens"),
    ("specclient.speculation.inactive_reason", "string", "report.speculation.inactive_reason"),
)

ECONOMICS: tuple[Row, ...] = (
    ("specclient.economics.gate", "string", "report.economics.gate"),
    ("specclient.economics.decision", "string", "report.economics.decision"),
    ("specclient.economics.baseline", "string", "report.economics.baseline"),
    ("specclient.economics.seconds_saved", "double", "report.economics.seconds_saved.mean"),
    ("specclient.economics.seconds_saved.low", "double", "report.economics.seconds_saved.low"),
    ("specclient.economics.seconds_saved.high", "double", "report.economics.seconds_saved.high"),
    ("specclient.economics.money_added", "double", "report.economics.money_added"),
)

TIMING: tuple[Row, ...] = (
    (TIMING_SOURCE, "string", "derived.timing_source"),
    ("specclient.timing.queue", "double", "report.timing.queue.seconds"),
    ("specclient.timing.prefill", "double", "report.timing.prefill.seconds"),
    ("specclient.timing.decode", "double", "report.timing.decode.seconds"),
    ("specclient.timing.server_total", "double", "report.timing.server_total.seconds"),
    ("specclient.timing.server_ttft", "double", "derived.server_ttft"),
    ("specclient.timing.queue_wait_included", "bool", "report.timing.time_to_first_token_includes_queue"),
    ("specclient.timing.anchor", "string", "report.timing.anchor"),
    ("specclient.timing.unattributed", "double", "report.timing.unattributed"),
    ("specclient.timing.consistent", "bool", "report.timing.consistent"),
    ("specclient.timing.load", "double", "report.timing.client.load"),
    ("specclient.timing.time_to_headers", "double", "report.timing.client.await_headers"),
    ("specclient.timing.time_to_first_content", "double", "report.timing.client.first_content"),
    ("specclient.timing.time_to_first_answer", "double", "report.timing.client.first_answer"),
    ("specclient.tpot", "double", "derived.tpot"),
    ("specclient.tpot.basis", "string", "derived.tpot_basis"),
    ("specclient.stream.chunks", "int", "derived.chunks"),
    ("specclient.stream.content_chunks", "int", "derived.content_chunks"),
    ("specclient.stream.max_gap", "double", "derived.max_gap"),
    ("specclient.stream.outcome", "string", "derived.stream_outcome"),
    ("specclient.retry.attempts", "int", "derived.attempts"),
    ("specclient.retry.backoff", "double", "derived.backoff"),
    ("specclient.request_id", "string", "report.request_id"),
    ("specclient.request.changed", "strings", "report.changed"),
)

LATENCY_ALIASES: tuple[Row, ...] = (
    ("gen_ai.latency.time_in_queue", "double", "derived.reported.queue"),
    ("gen_ai.latency.time_in_model_prefill", "double", "derived.reported.prefill"),
    ("gen_ai.latency.time_in_model_decode", "double", "derived.reported.decode"),
    ("gen_ai.latency.time_to_first_token", "double", "derived.reported.ttft"),
)
"""What vLLM, SGLang and TensorRT-LLM write, in seconds; only for what a server or the engine reported."""

USAGE_ALIASES: tuple[Row, ...] = (
    ("gen_ai.usage.details.accepted_prediction_tokens", "int", "report.prediction.accepted_tokens"),
    ("gen_ai.usage.details.rejected_prediction_tokens", "int", "report.prediction.rejected_tokens"),
)
CACHE_CREATION_ALIAS: tuple[Row, ...] = (
    ("gen_ai.usage.cache_creation.input_tokens", "int", "facts.cache_write_tokens"),
)
LANGFUSE_ALIAS: tuple[Row, ...] = (
    ("langfuse.observation.completion_start_time", "string", "derived.completion_start_time"),
)


def model_name(model: str | None, *, in_process: bool) -> str | None:
    """The model as telemetry names it: of a path on this machine only its last part.

    A path tells of the machine and its user, and differs from machine to machine.
    """
    if not isinstance(model, str) or not in_process or not model.startswith(("/", ".", "~")):
        return model
    return model.rstrip("/").rpartition("/")[2] or model


def walk(rows: Iterable[Row], roots: dict[str, Any]) -> dict[str, AttributeValue]:
    """The attributes that the rows find in `roots`."""
    found: dict[str, AttributeValue] = {}
    for name, kind, path in rows:
        value = attribute_value(kind, dig(roots, path))
        if value is not None:
            found[name] = value
    return found


def dig(root: Any, path: str) -> Any:
    """The value at a dotted path of dictionary keys and attribute names; None where it breaks off."""
    for step in _steps(path):
        if root is None:
            return None
        root = root.get(step) if isinstance(root, dict) else getattr(root, step, None)
    return root


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def attribute_value(kind: Kind, value: Any) -> AttributeValue | None:
    """`value` as an attribute of that kind, or None if it is none."""
    if value is None:
        return None
    if kind == "string":
        return value if isinstance(value, str) and value else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "strings":
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) for v in value):
            return None
        return tuple(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if kind == "double":
        return float(value)
    return int(value) if value == int(value) else None
