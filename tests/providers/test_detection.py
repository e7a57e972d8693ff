"""Which server answers at an address, from the answers alone: sync, async, cached, and never a guess."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from specclient_providers import resolve
from specclient_providers.detection import Detections, adetect, detect
from specclient_providers.signs import Answer


def models(owner: str | None, *names: str) -> dict[str, Any]:
    owned = {} if owner is None else {"owned_by": owner}
    return {"object": "list", "data": [{"id": name, "object": "model", **owned} for name in names or ("m",)]}


VLLM_METRICS = "# HELP vllm:num_requests_running x\nvllm:num_requests_running 0\n"
SPEC = 'vllm:spec_decode_num_drafts_total{engine="0"} 3\n'
SGLANG_INFO = {"version": "0.5.23", "speculative_algorithm": None, "model_path": "m"}

Server = dict[str, tuple[dict[str, str], Any]]


def plain(**paths: Any) -> Server:
    return {path: ({}, body) for path, body in paths.items()}


SERVERS: list[tuple[str, Server, dict[str, Any]]] = [
    (
        "vllm",
        {
            "/v1/models": ({"server": "uvicorn"}, models("vllm", "qwen")),
            "/version": ({}, {"version": "0.33.0"}),
            "/metrics": ({}, VLLM_METRICS),
        },
        {"version": "0.33.0", "models": ("qwen",), "speculating": False, "method": None},
    ),
    (
        "vllm",
        {
            "/v1/models": ({}, models("vllm")),
            "/version": ({}, {"version": "0.33.0"}),
            "/metrics": ({}, VLLM_METRICS + SPEC),
            "/server_info?config_format=json": (
                {},
                {"vllm_config": {"speculative_config": {"method": "ngram"}}},
            ),
        },
        {"speculating": True, "method": "ngram"},
    ),
    (
        "vllm",
        {"/v1/models": ({}, models("someone")), "/metrics": ({}, VLLM_METRICS + SPEC)},
        {"speculating": True, "method": None, "version": None},
    ),
    (
        "sglang",
        {"/v1/models": ({}, models("sglang")), "/server_info": ({}, SGLANG_INFO)},
        {"version": "0.5.23", "speculating": False, "method": None},
    ),
    (
        "sglang",
        {
            "/server_info": ({}, {**SGLANG_INFO, "speculative_algorithm": "ngram"}),
            "/api/version": ({}, {"version": "0.0.0"}),
        },
        {"speculating": True, "method": "NGRAM"},
    ),
    (
        "tensorrt_llm",
        {
            "/v1/models": ({}, models("tensorrt_llm")),
            "/version": ({}, {"version": "1.2.1"}),
            "/prometheus/metrics": (
                {},
                'trtllm_speculative_config_info{decoding_type="NGram",max_draft_len="4"} 1\n',
            ),
        },
        {"version": "1.2.1", "speculating": True, "method": "NGram"},
    ),
    (
        "llama_cpp",
        {
            "/v1/models": ({"Server": "llama.cpp"}, {**models("llamacpp"), "models": []}),
            "/props": ({}, {"build_info": "b6900-0c1e570", "total_slots": 1}),
            "/slots": ({}, [{"id": 0, "speculative": True}]),
        },
        {"version": "b6900-0c1e570", "speculating": True, "method": None},
    ),
    (
        "llama_cpp",
        {"/props": ({}, {"build_info": "b6900-0c1e570"}), "/slots": ({}, [{"id": 0, "speculative": False}])},
        {"speculating": False},
    ),
    (
        "tgi",
        {"/info": ({}, {"router": "text-generation-router", "version": "3.3.7", "model_id": "org/m"})},
        {"version": "3.3.7", "models": ("org/m",), "speculating": None},
    ),
    (
        "ollama",
        {
            "/v1/models": ({}, models("library", "gemma4:latest")),
            "/": ({}, "Ollama is running"),
            "/api/version": ({}, {"version": "0.33.0"}),
        },
        {"version": "0.33.0", "models": ("gemma4:latest",)},
    ),
    ("lm_studio", {"/api/v0/models": ({}, {"data": [{"id": "m", "compatibility_type": "gguf"}]})}, {}),
    (
        "mlx_lm",
        {"/v1/models": ({"server": "BaseHTTP/0.6 Python/3.12"}, models(None))},
        {"speculating": None},
    ),
    (
        "lmdeploy",
        {
            "/v1/models": ({}, models("lmdeploy")),
            "/metrics": ({}, "lmdeploy:num_requests 1\nlmdeploy:spec_decode_num_drafts_total 2\n"),
        },
        {"speculating": True},
    ),
    ("dynamo", {"/metrics": ({}, "dynamo_frontend_requests_total 4\nvllm:num_requests_running 0\n")}, {}),
    ("specclient", {"/v1/models": ({"server": "specclient/0.1.0"}, models("vllm"))}, {"version": "0.1.0"}),
]
IDS = [f"{number}-{row[0]}" for number, row in enumerate(SERVERS)]


def fetcher(server: Server, calls: list[str] | None = None) -> Callable[[str, str], Answer | None]:
    def fetch(method: str, path: str) -> Answer | None:
        assert method == "GET"
        if calls is not None:
            calls.append(path)
        if path not in server:
            return 404, {}, {"detail": "Not Found"}
        headers, body = server[path]
        return 200, headers, body

    return fetch


@pytest.mark.parametrize(("provider", "server", "expected"), SERVERS, ids=IDS)
def test_a_server_is_known_by_its_signs(provider: str, server: Server, expected: dict[str, Any]) -> None:
    found = detect(fetcher(server))
    assert found.provider == provider
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.evidence


@pytest.mark.parametrize(("provider", "server", "expected"), SERVERS, ids=IDS)
def test_async_finds_the_same(provider: str, server: Server, expected: dict[str, Any]) -> None:
    async def fetch(method: str, path: str) -> Answer | None:
        await asyncio.sleep(0)
        return fetcher(server)(method, path)

    assert asyncio.run(adetect(fetch)) == detect(fetcher(server))


@pytest.mark.parametrize(("provider", "server", "expected"), SERVERS, ids=IDS)
def test_findings_are_legal_facts(provider: str, server: Server, expected: dict[str, Any]) -> None:
    found = detect(fetcher(server))
    facts = resolve(found.provider, model="m", base_url="http://127.0.0.1:1", overrides=found.overrides)
    assert facts.speculation.method == found.method


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (404, {}, "nope"),
        (502, {"server": "nginx"}, "<html>Bad gateway</html>"),
        (200, {"server": "nginx"}, "<html>Welcome</html>"),
        (200, {}, []),
        (200, {}, None),
        (401, {}, {"error": {"message": "no key"}}),
        (200, {}, {"data": [{"id": "gpt", "owned_by": "openai"}]}),
        (200, {}, {"data": "text", "version": 3, "router": {}}),
    ],
)
def test_a_proxy_that_hides_everything_gives_unknown(answer: Answer | None) -> None:
    found = detect(lambda *_: answer)
    assert (found.server, found.provider) == ("unknown", "openai_compatible")
    assert (found.version, found.speculating, found.method) == (None, None, None)
    assert found.overrides == {}
    assert found.switch_on


def test_an_ollama_imitation_does_not_pass_for_ollama() -> None:
    server: Server = {"/api/version": ({}, {"version": "0.1"}), "/": ({}, "<html></html>")}
    assert detect(fetcher(server)).server == "unknown"


def test_what_works_and_what_to_switch_on_are_said() -> None:
    off = detect(fetcher(SERVERS[0][1]))
    assert any("--speculative-config" in advice for advice in off.switch_on)
    assert any("--enable-per-request-metrics" in advice for advice in off.switch_on)
    on = detect(fetcher(SERVERS[1][1]))
    assert on.works == ("known text in the prompt is drafted by ngram",)
    assert not any("--speculative-config" in advice for advice in on.switch_on)
    hidden = detect(fetcher(SERVERS[2][1]))
    assert any("speculation.method" in advice for advice in hidden.switch_on)


def test_a_draft_corpus_without_budget_is_pointed_out() -> None:
    found = detect(fetcher(SERVERS[4][1]))
    assert any("sam-budget" in advice for advice in found.switch_on)
    assert not any("corpus" in text for text in found.works)
    assert not any("in the prompt" in advice for advice in found.switch_on)
    facts = resolve("sglang", model="m", overrides=found.overrides)
    assert (facts.speculation.method, facts.speculation.corpus_methods) == ("NGRAM", ())


def test_a_draft_corpus_with_a_budget_works() -> None:
    info = {**SGLANG_INFO, "speculative_algorithm": "NGRAM", "speculative_ngram_external_sam_budget": 8}
    found = detect(fetcher({"/server_info": ({}, info)}))
    assert any("corpus" in text for text in found.works)
    assert found.switch_on == ()
    assert found.overrides == {"speculation": {"method": "NGRAM"}}


def test_a_method_that_no_row_knows_is_taken_over_as_it_is() -> None:
    found = detect(fetcher({"/server_info": ({}, {**SGLANG_INFO, "speculative_algorithm": "NEWER"})}))
    assert resolve("sglang", model="m", overrides=found.overrides).speculation.method == "NEWER"


def test_a_known_server_costs_few_questions() -> None:
    calls: list[str] = []
    detect(fetcher(SERVERS[0][1], calls))
    assert calls == ["/v1/models", "/version", "/metrics", "/server_info?config_format=json"]


def test_findings_are_kept_by_address_for_a_time() -> None:
    now = [0.0]
    kept = Detections(ttl=10, clock=lambda: now[0])
    found = detect(fetcher(SERVERS[0][1]))
    assert kept.recall("http://a") is None
    kept.keep("http://a", found)
    assert kept.recall("http://a") is found
    assert kept.recall("http://b") is None
    now[0] = 10
    assert kept.recall("http://a") is None
