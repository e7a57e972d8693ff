"""Every row of the registry: sourced, dated, well formed; and a new provider takes one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from specclient_providers import (
    UnknownProvider,
    endpoints,
    provider_at,
    provider_names,
    register,
    resolve,
    unregister,
)
from specclient_providers.answers import NAMES
from specclient_providers.endpoint import Claim, Endpoint
from specclient_providers.registry import get

README = Path(__file__).parents[2] / "providers" / "README.md"
SDK_FACT = re.compile(r"^[\w.-]+ \d+(\.\d+)+\w*(,| \(|$)|^specclient, ")


def claims(endpoint: Endpoint) -> Iterator[tuple[str, Claim]]:
    for rule in endpoint.prediction:
        yield "prediction", rule.claim
    yield "no_prediction", endpoint.no_prediction
    yield "counters", endpoint.answer.counters
    yield "timings", endpoint.answer.timings
    yield "speculation", endpoint.speculation.claim
    yield "unknown_fields", endpoint.request.unknown_fields
    yield "history", endpoint.request.history.claim


def sources(endpoint: Endpoint) -> Iterator[str]:
    yield from (claim.source for _, claim in claims(endpoint) if claim.source)
    yield from (figure.source for figure in endpoint.answer.figures if figure.source)
    yield from (opt.source for opt in endpoint.request.opt_ins)
    yield from (rule.source for rule in endpoint.request.length if rule.source)
    yield from (item.source for item in endpoint.request.cautions if item.source)
    yield from (item.source for rule in endpoint.prediction for item in rule.conflicts if item.source)
    if endpoint.billing.source:
        yield endpoint.billing.source


ENDPOINTS = [get(name) for name in provider_names()]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
class TestEveryRow:
    def test_says_documented_only_with_source_and_date(self, endpoint: Endpoint) -> None:
        for what, claim in claims(endpoint):
            if claim.state in ("documented", "rejected", "ignored"):
                assert claim.source, f"{endpoint.name} {what}"
                assert claim.checked, f"{endpoint.name} {what}"

    def test_names_sources_that_can_be_followed(self, endpoint: Endpoint) -> None:
        for source in sources(endpoint):
            assert source.startswith("https://") or SDK_FACT.match(source), source

    def test_conflicts_cautions_and_charges_are_sourced(self, endpoint: Endpoint) -> None:
        for rule in endpoint.prediction:
            assert all(conflict.source for conflict in rule.conflicts)
        assert all(item.source for item in endpoint.request.cautions)
        assert all(item.source for item in endpoint.request.length)
        assert endpoint.billing.rejected_charged is None or endpoint.billing.source

    def test_is_named_like_its_module(self, endpoint: Endpoint) -> None:
        assert endpoint.name == endpoint.name.lower()
        assert endpoint.name.isidentifier()
        assert get(endpoint.name) is endpoint

    def test_has_ordered_dates(self, endpoint: Endpoint) -> None:
        for _, claim in claims(endpoint):
            assert claim.checked is None or claim.checked <= date.today()
            assert not (claim.since and claim.until) or claim.since < claim.until

    def test_reports_figures_that_the_reader_knows_or_derives(self, endpoint: Endpoint) -> None:
        read = {figure.name for figure in endpoint.answer.figures}
        used = {
            name for rule in endpoint.answer.derived for name in (*rule.plus, *rule.minus, *rule.optional)
        }
        private = read - set(NAMES) - {"fw_positions"}
        assert private <= used
        assert used <= read | {rule.name for rule in endpoint.answer.derived}

    def test_can_be_reached_with_what_it_says(self, endpoint: Endpoint) -> None:
        facts = resolve(endpoint.name, model="m")
        if endpoint.base_url is not None:
            assert facts.url.startswith(("https://", "http://localhost", "http://127.0.0.1"))
            assert facts.url.endswith("/chat/completions")
        assert (facts.path is None) == (not endpoint.speaks_openai)

    def test_documented_predictions_have_a_shape(self, endpoint: Endpoint) -> None:
        for rule in endpoint.prediction:
            assert rule.claim.state != "documented" or rule.shapes


def test_the_registry_covers_what_it_promises() -> None:
    hosted = (
        "openai azure fireworks mistral cerebras groq together openrouter deepinfra baseten sambanova xai "
        "gemini vertex anthropic bedrock sagemaker databricks oci inception morph relace vercel deepseek "
        "nvidia_nim dynamo huggingface perplexity nebius novita hyperbolic"
    )
    servers = "vllm sglang tensorrt_llm tgi llama_cpp ollama lm_studio mlx_lm lmdeploy"
    own = "local specclient openai_compatible"
    assert set(provider_names()) == set(f"{hosted} {servers} {own}".split())


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("opanai", "openai"),
        ("fireworks_ai", "fireworks"),
        ("azure-openai", "azure"),
        ("llama.cpp", "llama_cpp"),
        ("VLLM", "vllm"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(wrong: str, meant: str) -> None:
    with pytest.raises(UnknownProvider, match=rf"\b{meant}\b") as caught:
        resolve(wrong)
    assert "openai_compatible" in str(caught.value)


def test_a_name_like_nothing_is_answered_with_all_names() -> None:
    with pytest.raises(UnknownProvider, match="Known are anthropic, azure"):
        resolve("qqqqqqqqqqqq")


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"),
        ("API.OpenAI.com", "openai"),
        ("eu.api.openai.com", "openai"),
        ("r.openai.azure.com", "azure"),
        ("r.cognitiveservices.azure.com", "azure"),
        ("europe-west4-aiplatform.googleapis.com", "vertex"),
        ("generativelanguage.googleapis.com", "gemini"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        ("s3.amazonaws.com", "openai_compatible"),
        ("api.together.ai", "together"),
        ("api.together.xyz", "together"),
        ("adb-1.2.azuredatabricks.net", "databricks"),
        ("openai.com.evil.example", "openai_compatible"),
        ("localhost", "openai_compatible"),
        ("127.0.0.1", "openai_compatible"),
        ("", "openai_compatible"),
    ],
)
def test_a_host_tells_the_endpoint(host: str, provider: str) -> None:
    assert provider_at(host) == provider


def test_every_hosted_address_is_known_by_its_own_host() -> None:
    for endpoint in ENDPOINTS:
        if endpoint.base_url and not endpoint.self_hosted:
            assert provider_at(urlsplit(endpoint.base_url).hostname or "") == endpoint.name


def test_an_application_can_register_an_endpoint_of_its_own() -> None:
    register(Endpoint(name="mine", title="Mine", base_url="https://mine.example/v1"))
    try:
        assert "mine" in provider_names()
        assert resolve("mine").url == "https://mine.example/v1/chat/completions"
        assert provider_at("mine.example") == "mine"
    finally:
        unregister("mine")
    assert "mine" not in provider_names()
    assert provider_at("mine.example") == "openai_compatible"


def test_a_registered_name_is_lower_case() -> None:
    with pytest.raises(ValueError, match="lower case"):
        register(Endpoint(name="My-API", title="x", base_url=None))


def test_the_readme_adds_a_provider_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, use = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
    (tmp_path / "acme.py").write_text(module, encoding="utf-8")
    monkeypatch.setattr(endpoints, "__path__", [*endpoints.__path__, str(tmp_path)])
    assert "acme" in provider_names()
    exec(compile(use, str(README), "exec"), {})
    from specclient.facts import capabilities

    found = capabilities("acme", model="anvil-2", on=date(2026, 11, 29))
    assert found.prediction.supported
    assert capabilities("acme", model="anvil-2", on=date(2030, 1, 1)).prediction.why_not == "expired"
