"""What is shown is what is obeyed, and dates are in plain sight."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from specclient.core.plan import build_plan
from specclient.facts import capabilities, of_facts
from specclient.prediction import Prediction
from specclient_providers import UnknownProvider, docs, provider_names, resolve
from tests.core.plan_rows import rows

ON = date(2026, 11, 29)
PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
CASES = sorted({(row.provider, row.model) for row in rows()} | {(name, "m") for name in provider_names()})


@pytest.mark.parametrize(("provider", "model"), CASES)
def test_the_send_path_obeys_what_is_shown(provider: str, model: str) -> None:
    shown = capabilities(provider, model=model, on=ON)
    facts = resolve(provider, model=model, on=ON)
    request = {"model": model, "messages": [{"role": "user", "content": "x"}]}
    plan = build_plan(request, facts=facts, prediction=Prediction("known"))
    taken = plan.outcome in ("forwarded", "local") or plan.body["messages"] != request["messages"]
    assert shown.prediction.supported == taken
    for parameter in shown.prediction.conflicts:
        if parameter == "tools":
            body = {**request, "tools": [{"type": "function"}]}
            assert build_plan(body, facts=facts, prediction=Prediction("known")).outcome == "withheld"
    assert {opt.code for opt in shown.opt_ins if opt.when == "always"} <= plan.hidden


@pytest.mark.parametrize("provider", provider_names())
def test_capabilities_survive_json_and_print(provider: str) -> None:
    shown = capabilities(provider, model="m", on=ON)
    again = json.loads(json.dumps(shown.to_dict()))
    assert again["provider"] == provider
    assert again["prediction"]["state"] == shown.prediction.state
    assert shown.title in str(shown)
    assert of_facts(resolve(provider, model="m", on=ON)) == shown


def test_a_near_end_and_a_past_end_are_shown_as_such() -> None:
    assert "ends soon, on 2027-01-14" in str(capabilities("openai", model="gpt-4o", on=ON))
    assert "ended on 2027-01-14" in str(capabilities("openai", model="gpt-4o", on=date(2027, 2, 1)))
    assert "until 2027-01-14" in str(capabilities("openai", model="gpt-4o", on=date(2026, 1, 1)))


def test_without_a_model_the_documented_ones_are_listed() -> None:
    text = str(capabilities("openai", on=ON))
    assert "depends on the model" in text
    assert "gpt-4.1-mini" in text
    assert "ended 2026-10-23" in text


def test_azure_shows_why_an_api_version_will_not_do() -> None:
    shown = capabilities("azure", model="gpt-4o", api_version="2024-10-21", on=ON)
    assert shown.prediction.why_not == "api_version"
    assert "not for this api-version" in str(shown)


def test_doubt_is_shown() -> None:
    shown = capabilities("azure", model="gpt-4o", on=ON)
    assert shown.prediction.certainty == "disputed"
    assert "disputed" in str(shown)


@pytest.mark.parametrize("provider", provider_names())
@pytest.mark.parametrize("width", [80, 60])
def test_the_text_fits_the_terminal_and_shows_no_private_name(provider: str, width: int) -> None:
    text = capabilities(provider, on=ON).render(width)
    for line in text.splitlines():
        assert len(line) <= width or len(line[18:].split()) == 1, line
        assert line == line.rstrip()
    for private in ("fw_", "sg_", "lms_", "groq_processing", "llama_", "tgi_queue", "ollama_load", "sn_"):
        assert private not in text.replace("llama_cpp", "")


def test_every_source_is_shown_with_its_date() -> None:
    text = " ".join(capabilities("fireworks", model="m", on=ON).render().split())
    assert "https://docs.fireworks.ai/guides/predicted-outputs (read on 2026-11-29)" in text
    assert "queue perf_metrics.prefill-queue-duration + [perf_metrics.tokenizer-queue-duration]" in text


def test_an_unknown_provider_is_named_with_near_ones() -> None:
    with pytest.raises(UnknownProvider, match="fireworks"):
        capabilities("firework")


def test_the_page_of_providers_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == docs.render(), "run python -m specclient_providers.docs"


def test_the_page_can_be_checked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "providers.md"
    assert docs.main(["--check", str(page)]) == 1
    assert "not up to date" in capsys.readouterr().err
    assert docs.main([str(page)]) == 0
    assert docs.main(["--check", str(page)]) == 0
    page.write_text(page.read_text(encoding="utf-8") + "x", encoding="utf-8")
    assert docs.main(["--check", str(page)]) == 1


def test_the_page_shows_every_provider_with_sources() -> None:
    page = docs.render()
    for name in provider_names():
        assert f'<a id="{name}"></a>' in page
    assert "<https://docs.fireworks.ai/guides/predicted-outputs>" in page


def test_asking_opens_no_connection_and_loads_no_engine() -> None:
    code = (
        "import sys, socket\n"
        "def no(*a, **k): raise SystemExit('network')\n"
        "socket.socket.connect = no\n"
        "from specclient.facts import capabilities\n"
        "capabilities('azure', model='gpt-4o')\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'tiktoken', 'httpx')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
