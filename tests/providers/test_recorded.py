"""What real servers answered: their signs and their figures, as they came over the wire.

`recorded/<provider>.json` and `.sse` hold the answers of a vLLM and of a llama.cpp server on a CPU, both
started with n-gram speculation and asked for the continuation of a text that repeats itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specclient.core.account import prediction_report
from specclient.core.plan import Plan, build_plan
from specclient.prediction import Prediction
from specclient_providers import AnswerReader, Reading, resolve
from specclient_providers.detection import detect
from specclient_providers.signs import Answer

FOLDER = Path(__file__).with_name("recorded")
KNOWN = "def total(items):\n"


def recorded(provider: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{provider}.json").read_text(encoding="utf-8"))
    return document


def events(provider: str, kind: str) -> list[Any]:
    if kind == "plain":
        return [recorded(provider)["plain"]]
    lines = (FOLDER / f"{provider}.sse").read_text(encoding="utf-8").splitlines()
    found = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(text) for text in found if text != "[DONE]"]


def plan(provider: str, kind: str) -> Plan:
    facts = resolve(provider, model="m", api="completions", overrides=recorded(provider)["overrides"])
    request = {"model": "m", "prompt": f"{KNOWN}    result = 0\n", "stream": kind == "stream"}
    return build_plan(request, facts=facts, prediction=Prediction(KNOWN))


def reading(provider: str, kind: str) -> Reading:
    reader = AnswerReader(plan(provider, kind).facts)
    for event in events(provider, kind):
        reader.event(event)
    return reader.result()


@pytest.mark.parametrize(
    ("provider", "version", "method"), [("vllm", "0.32.0", "ngram"), ("llama_cpp", "b0-unknown", None)]
)
def test_real_servers_are_detected(provider: str, version: str, method: str | None) -> None:
    signs = recorded(provider)["signs"]

    def fetch(method: str, path: str) -> Answer | None:
        found = signs.get(path)
        return None if found is None else (found[0], found[1], found[2])

    found = detect(fetch)
    assert (found.provider, found.version, found.method) == (provider, version, method)
    assert found.speculating is True
    assert found.models


def test_llama_cpps_own_word_about_its_speculation_is_not_believed() -> None:
    """/props says none while /slots says that it speculates: the former is a known fault."""
    signs = recorded("llama_cpp")["signs"]
    assert signs["/props"][2]["default_generation_settings"]["params"]["speculative.types"] == "none"
    assert signs["/slots"][2][0]["speculative"] is True


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("provider", ["vllm", "llama_cpp"])
def test_real_figures_are_read(provider: str, kind: str) -> None:
    found = reading(provider, kind)
    assert found.notes == ()
    assert (found.queue is not None) == (provider == "vllm")
    assert found.prefill is not None
    assert found.decode is not None
    assert 0 < found.prefill.seconds < 60
    assert 0 < found.decode.seconds < 60
    assert found.drafted is not None
    assert found.accepted_draft is not None
    assert 0 < found.accepted_draft <= found.drafted
    assert found.usage.completion in (32, 48)
    assert found.usage.prompt == 92


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("provider", ["vllm", "llama_cpp"])
def test_real_answers_show_that_the_known_text_was_used(provider: str, kind: str) -> None:
    report = prediction_report(plan(provider, kind), reading(provider, kind))
    assert (report.outcome, report.effect) == ("via_prompt", "used")
    assert (report.accepted_tokens, report.rejected_tokens) == (None, None)


def test_vllms_usage_chunk_is_swallowed_and_the_text_stays() -> None:
    made = plan("vllm", "stream")
    shown = [made.hide(event) for event in events("vllm", "stream")]
    assert shown[-1] is None
    assert all(event is not None for event in shown[:-1])
    text = "".join(event["choices"][0]["text"] for event in shown if event is not None)
    assert text == recorded("vllm")["plain"]["choices"][0]["text"]
