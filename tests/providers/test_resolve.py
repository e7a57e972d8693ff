"""Rules to facts: addresses, routes, models, api-versions and dates."""

from __future__ import annotations

from datetime import date

import pytest

from specclient_providers import resolve

ON = date(2026, 11, 29)


@pytest.mark.parametrize(
    "spelling",
    [
        "http://h:8000",
        "http://h:8000/",
        "http://h:8000/v1",
        "http://h:8000/v1/",
        " http://h:8000/v1/chat/completions ",
        "http://h:8000/v1/completions",
    ],
)
def test_an_address_has_one_meaning_however_it_is_spelt(spelling: str) -> None:
    assert resolve("vllm", base_url=spelling).url == "http://h:8000/v1/chat/completions"


@pytest.mark.parametrize(
    ("provider", "base_url", "url"),
    [
        ("fireworks", "https://f.example", "https://f.example/inference/v1/chat/completions"),
        ("groq", "https://g.example", "https://g.example/openai/v1/chat/completions"),
        ("deepseek", "https://d.example", "https://d.example/chat/completions"),
        ("openai_compatible", "https://gw.example/team/a/", "https://gw.example/team/a/chat/completions"),
    ],
)
def test_a_bare_host_gets_the_endpoints_own_prefix(provider: str, base_url: str, url: str) -> None:
    assert resolve(provider, base_url=base_url).url == url


AZURE_V1 = "https://r.openai.azure.com/openai/v1/chat/completions"
AZURE_OLD = "https://r.openai.azure.com/openai/deployments/d/chat/completions"


@pytest.mark.parametrize("base_url", ["https://r.openai.azure.com", "https://r.openai.azure.com/openai/"])
@pytest.mark.parametrize(
    ("version", "url", "query"),
    [
        (None, AZURE_V1, {}),
        ("v1", AZURE_V1, {}),
        ("preview", AZURE_V1, {"api-version": "preview"}),
        ("2024-10-21", AZURE_OLD, {"api-version": "2024-10-21"}),
        ("2025-01-01-preview", AZURE_OLD, {"api-version": "2025-01-01-preview"}),
    ],
)
def test_azure_routes(base_url: str, version: str | None, url: str, query: dict[str, str]) -> None:
    facts = resolve("azure", model="d", base_url=base_url, api_version=version)
    assert (facts.url, dict(facts.query)) == (url, query)


def test_an_azure_v1_address_stays_on_the_v1_route() -> None:
    facts = resolve(
        "azure", model="d", base_url="https://r.openai.azure.com/openai/v1", api_version="2025-01-01"
    )
    assert (facts.url, dict(facts.query)) == (AZURE_V1, {})


@pytest.mark.parametrize("version", [None, "2024-10-21"])
def test_azures_whole_addresses_say_version_and_deployment(version: str | None) -> None:
    whole = f"{AZURE_OLD}?api-version=2025-01-01-preview"
    facts = resolve("azure", model="gpt-4o", base_url=whole, api_version=version)
    assert facts.url == AZURE_OLD
    assert facts.query == {"api-version": version or "2025-01-01-preview"}
    assert facts.prediction.supported == (version is None)


def test_the_query_of_an_address_goes_with_every_request_and_is_not_shown() -> None:
    facts = resolve("vllm", model="m", base_url="http://h:8000/v1/?key=secret&route=a")
    assert facts.url == "http://h:8000/v1/chat/completions"
    assert facts.query == {"key": "secret", "route": "a"}
    assert "secret" not in repr(facts)


@pytest.mark.parametrize(
    ("provider", "given", "path"),
    [
        ("groq", "/openai", "/openai/v1"),
        ("fireworks", "/inference/", "/inference/v1"),
        ("openrouter", "/api", "/api/v1"),
        ("gemini", "/v1beta", "/v1beta/openai"),
        ("groq", "/other", "/other"),
        ("groq", "/open", "/open"),
    ],
)
def test_the_beginning_of_the_endpoints_own_path_is_completed(provider: str, given: str, path: str) -> None:
    assert resolve(provider, base_url=f"https://h.example{given}").base_url == f"https://h.example{path}"


def test_an_azure_gateway_with_openai_in_its_host_keeps_its_host() -> None:
    facts = resolve("azure", model="d", base_url="https://openai.corp.example/azure")
    assert facts.url == "https://openai.corp.example/azure/openai/v1/chat/completions"


def test_an_address_without_a_scheme_is_left_for_whoever_connects() -> None:
    assert resolve("vllm", base_url="localhost:8000").base_url == "localhost:8000"


def test_credentials_in_an_address_are_used_but_not_shown() -> None:
    facts = resolve("vllm", base_url="https://user:secret@h.example/v1")
    assert facts.base_url == "https://user:secret@h.example/v1"
    assert facts.url == "https://h.example/v1/chat/completions"
    assert "secret" not in repr(facts)


def test_a_key_goes_into_the_documented_header() -> None:
    assert (resolve("openai").auth.header, resolve("openai").auth.value("k")) == ("Authorization", "Bearer k")
    assert (resolve("azure").auth.header, resolve("azure").auth.value("k")) == ("api-key", "k")


@pytest.mark.parametrize(
    ("day", "supported", "code", "soon"),
    [
        (date(2026, 9, 1), True, "", False),
        (date(2026, 10, 16), True, "", True),
        (date(2026, 10, 15), True, "", False),
        (date(2027, 1, 13), True, "", True),
        (date(2027, 1, 14), False, "expired", False),
        (date(2024, 1, 1), False, "not_yet", False),
    ],
)
def test_dates_decide(day: date, supported: bool, code: str, soon: bool) -> None:
    found = resolve("openai", model="gpt-4o", on=day).prediction
    assert (found.supported, found.code, found.ends_soon) == (supported, code, soon)
    assert found.expired == (code == "expired")
    assert found.until == date(2027, 1, 14)


def test_today_is_the_default_day() -> None:
    assert resolve("openai").on == date.today()


@pytest.mark.parametrize("model", ["GPT-4o", "gpt-4O-2024-08-06"])
def test_model_names_ignore_case(model: str) -> None:
    assert resolve("openai", model=model, on=ON).prediction.supported


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-realtime-preview", "gpt-4o-search-preview", "gpt-4o-transcribe", "my-gpt-4o", "gpt-4.1-x"],
)
def test_a_name_that_only_resembles_a_documented_model_is_not_one(model: str) -> None:
    assert not resolve("openai", model=model, on=ON).prediction.supported


def test_facts_of_servers_name_their_telemetry() -> None:
    assert resolve("mistral").telemetry_name == "mistral_ai"
    assert resolve("azure").telemetry_name == "azure.ai.openai"
    assert resolve("vllm").telemetry_name == "vllm"
    assert resolve("local").in_process
    assert resolve("vllm").self_hosted
    assert not resolve("openai").self_hosted
