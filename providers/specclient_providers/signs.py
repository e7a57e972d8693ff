"""The signs by which servers are told apart, and what each of them reveals.

A sign is (method, path, reader); a reader notes what it learns in a `Found` and ignores the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, Mapping[str, str], Any]

UNNAMED = "openai_compatible"
"""The provider of an address that is not known to be any server's."""

GATEWAY = "specclient"
"""The provider that `specclient serve` is."""


@dataclass(slots=True)
class Found:
    """What the signs have told so far."""

    server: str | None = None
    version: str | None = None
    models: list[str] = field(default_factory=list)
    speculating: bool | None = None
    method: str | None = None
    loads_corpora: bool | None = None
    works: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)

    def is_server(self, name: str, evidence: str) -> None:
        if self.server is None:
            self.server = name
            self.evidence.append(evidence)


Reader = Callable[[Found, Answer | None], None]
Sign = tuple[str, str, Reader]

_OWNERS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt_llm",
    "llamacpp": "llama_cpp",
    "lmdeploy": "lmdeploy",
}
_METRIC_PREFIXES = (
    ("dynamo_frontend_", "dynamo"),
    ("vllm:", "vllm"),
    ("sglang:", "sglang"),
    ("lmdeploy:", "lmdeploy"),
    ("llamacpp:", "llama_cpp"),
    ("tgi_request_", "tgi"),
    ("trtllm_", "tensorrt_llm"),
)
_DECODING_TYPE = re.compile(r'trtllm_speculative_config_info\{[^}]*decoding_type="([^"]+)"')


def is_gateway(server: str) -> bool:
    """Whether a Server header is that of `specclient serve`: it signs every response."""
    return server.lower().startswith("specclient/")


def _json(answer: Answer | None) -> Mapping[str, Any]:
    """The body of a good answer as an object; empty for anything else."""
    if answer is None or answer[0] != 200 or not isinstance(answer[2], Mapping):
        return {}
    return answer[2]


def _text(answer: Answer | None) -> str:
    return answer[2] if answer is not None and answer[0] == 200 and isinstance(answer[2], str) else ""


def _models(found: Found, answer: Answer | None) -> None:
    """`/v1/models`: the owner names most servers; llama.cpp also signs every response in a header."""
    if answer is None:
        return
    headers = {str(name).lower(): str(value) for name, value in answer[1].items()}
    data = _json(answer).get("data")
    items = [item for item in data if isinstance(item, Mapping)] if isinstance(data, list) else []
    found.models += [str(item["id"]) for item in items if "id" in item]
    server = headers.get("server", "").lower()
    if server.startswith("llama.cpp"):
        found.is_server("llama_cpp", "Server header of /v1/models")
    if is_gateway(server):
        found.is_server(GATEWAY, "Server header of /v1/models")
        found.version = server.partition("/")[2] or None
    for item in items:
        owner = str(item.get("owned_by", ""))
        if owner in _OWNERS:
            found.is_server(_OWNERS[owner], f"owned_by {owner} in /v1/models")
    if items and server.startswith("basehttp") and all("owned_by" not in item for item in items):
        found.is_server("mlx_lm", "Server header and missing owner in /v1/models")


def _server_info(found: Found, answer: Answer | None) -> None:
    info = _json(answer)
    if "speculative_algorithm" not in info:
        return
    found.is_server("sglang", "/server_info")
    found.version = str(info["version"]) if "version" in info else found.version
    algorithm = info["speculative_algorithm"]
    found.speculating = algorithm is not None
    found.method = str(algorithm).upper() if algorithm else None
    found.evidence.append("speculative_algorithm in /server_info")
    budget = info.get("speculative_ngram_external_sam_budget")
    if found.method == "NGRAM":
        found.loads_corpora = bool(budget)
    if found.loads_corpora is False:
        found.advice.append(
            "Its budget for loaded corpora is 0, so they would draft nothing: start it with "
            "--speculative-ngram-external-sam-budget 8"
        )


def _props(found: Found, answer: Answer | None) -> None:
    props = _json(answer)
    if "build_info" not in props:
        return
    found.is_server("llama_cpp", "build_info in /props")
    found.version = str(props["build_info"])
    found.works.append("every answer reports prefill and decode time")


def _info(found: Found, answer: Answer | None) -> None:
    info = _json(answer)
    if info.get("router") != "text-generation-router":
        return
    found.is_server("tgi", "router in /info")
    found.version = str(info.get("version")) if info.get("version") else None
    if info.get("model_id") and str(info["model_id"]) not in found.models:
        found.models.append(str(info["model_id"]))
    found.works.append("plain answers report queue time in headers")


def _root(found: Found, answer: Answer | None) -> None:
    if _text(answer).strip() == "Ollama is running":
        found.is_server("ollama", "text of /")


def _lm_studio(found: Found, answer: Answer | None) -> None:
    data = _json(answer).get("data")
    if isinstance(data, list) and any(
        isinstance(item, Mapping) and "compatibility_type" in item for item in data
    ):
        found.is_server("lm_studio", "/api/v0/models")


def _metrics(found: Found, answer: Answer | None) -> None:
    text = _text(answer)
    for prefix, server in _METRIC_PREFIXES:
        if prefix in text:
            found.is_server(server, f"{prefix} in /metrics")
            break
    if found.server in ("vllm", "lmdeploy") and f"{found.server}:" in text:
        found.speculating = f"{found.server}:spec_decode_num_drafts" in text
        found.evidence.append("spec_decode counters in /metrics")


def _vllm_version(found: Found, answer: Answer | None) -> None:
    """Whether its per-request reports are on cannot be seen from outside, so the flags are named."""
    _version(found, answer)
    found.advice.append(
        "If answers lack queue, prefill and decode times, start it with --enable-per-request-metrics; for "
        "acceptance add --per-request-spec-decode-metrics summary."
    )


def _version(found: Found, answer: Answer | None) -> None:
    version = _json(answer).get("version")
    found.version = str(version) if version else found.version


def _vllm_config(found: Found, answer: Answer | None) -> None:
    """Only in development mode does vLLM show its configuration."""
    config = _json(answer).get("vllm_config", _json(answer))
    speculative = config.get("speculative_config") if isinstance(config, Mapping) else None
    if isinstance(speculative, Mapping) and speculative.get("method"):
        found.speculating, found.method = True, str(speculative["method"])
        found.evidence.append("speculative_config in /server_info")


def _slots(found: Found, answer: Answer | None) -> None:
    """The only place where llama-server tells whether it speculates; /props always says none."""
    if answer is None or answer[0] != 200 or not isinstance(answer[2], list):
        return
    found.speculating = any(
        isinstance(slot, Mapping) and slot.get("speculative") is True for slot in answer[2]
    )
    found.evidence.append("speculative in /slots")


def _trtllm_metrics(found: Found, answer: Answer | None) -> None:
    text = _text(answer)
    if "trtllm_" not in text:
        return
    match = _DECODING_TYPE.search(text)
    found.speculating = "trtllm_speculative_config_info" in text
    found.method = match.group(1) if match else None
    found.evidence.append("/prometheus/metrics")


IDENTITY: tuple[Sign, ...] = (
    ("GET", "/v1/models", _models),
    ("GET", "/server_info", _server_info),
    ("GET", "/props", _props),
    ("GET", "/info", _info),
    ("GET", "/", _root),
    ("GET", "/api/v0/models", _lm_studio),
    ("GET", "/metrics", _metrics),
)
"""Asked in this order until one of them names the server. SGLang and llama.cpp imitate parts of Ollama's
API, so they are asked before it."""

DETAILS: Mapping[str, tuple[Sign, ...]] = {
    "vllm": (
        ("GET", "/version", _vllm_version),
        ("GET", "/metrics", _metrics),
        ("GET", "/server_info?config_format=json", _vllm_config),
    ),
    "sglang": (("GET", "/server_info", _server_info),),
    "tensorrt_llm": (("GET", "/version", _version), ("GET", "/prometheus/metrics", _trtllm_metrics)),
    "llama_cpp": (("GET", "/props", _props), ("GET", "/slots", _slots)),
    "ollama": (("GET", "/api/version", _version),),
    "lmdeploy": (("GET", "/metrics", _metrics),),
}
