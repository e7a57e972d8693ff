"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import specclient
from tests.server import ScriptedServer, completion, reply


def test_every_public_name_is_there() -> None:
    assert specclient.__all__ == ["__version__", *sorted(specclient.__all__[1:])]
    for name in specclient.__all__:
        assert getattr(specclient, name) is not None
        assert name in dir(specclient)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = specclient.nonsense


def test_importing_is_light() -> None:
    code = (
        "import sys, specclient\n"
        "heavy = {'pydantic', 'httpx', 'httpcore', 'torch', 'tiktoken', 'opentelemetry'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "specclient.Client(provider='openai', model='m', api_key='k').chat.completions\n"
        "heavy = {'torch', 'transformers', 'tiktoken', 'tenacity', 'openai', 'specclient_engine'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_dry_run() -> None:
    request = {"messages": [{"role": "user", "content": "x"}], "prediction": "known"}
    plan = specclient.plan(request, provider="openai", model="gpt-4o", on=date(2026, 12, 1))
    assert plan.outcome == "forwarded"
    assert plan.body["prediction"] == {"type": "content", "content": "known"}
    late = specclient.plan(request, provider="openai", model="gpt-4o", on=date(2027, 6, 1))
    assert late.outcome == "withheld"
    with pytest.raises(specclient.ConfigError, match="Did you mean fireworks"):
        specclient.plan(request, provider="firework", model="m")
    with pytest.raises(specclient.PredictionRefusedError):
        specclient.plan(request, provider="groq", model="m", on_unsupported="error")


def test_the_tracing_section(tmp_path: Path) -> None:
    path = tmp_path / "specclient.toml"
    path.write_text('[tracing]\nphases = "all"\n[targets.a]\nprovider = "local"\n')
    client = specclient.Client(config=path)
    assert client.tracing.phases == "all"
    own = specclient.TracingOptions(telemetry="off")
    assert specclient.Client(config=path, tracing=own).tracing is own
    path.write_text('[tracing]\nphase = "all"\n[targets.a]\nprovider = "local"\n')
    with pytest.raises(specclient.ConfigError, match=r"no key tracing\.phase; did you mean phases"):
        client.reload()


def test_reloading_keeps_the_connections(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        server.respond = lambda _: reply(completion())
        path = tmp_path / "specclient.toml"
        path.write_text(f'[targets.a]\nprovider = "vllm"\nbase_url = "{server.url}"\nmodel = "one"\n')
        with specclient.Client(config=path) as client:
            client.chat.completions.create(messages=[])
            path.write_text(path.read_text().replace("one", "two"))
            client.reload()
            client.chat.completions.create(messages=[])
        assert [(r.json["model"], r.connection) for r in server.requests] == [("one", 0), ("two", 0)]


WRONG = {
    "no-toml": "[targets.a",
    "target-gone": '[targets.b]\nprovider = "local"\n',
    "no-key": '[targets.a]\nprovider = "vllm"\nmodel = "two"\nbase_url = "http://h"\napi_key_env = "NO"\n',
    "fallback-gone": '[targets.a]\nprovider = "local"\nfallback = ["c"]\n',
    "tracing": '[tracing]\nphases = "sometimes"\n[targets.a]\nprovider = "local"\n',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_reload_that_fails_changes_nothing(tmp_path: Path, text: str) -> None:
    with ScriptedServer() as server:
        server.respond = lambda _: reply(completion())
        path = tmp_path / "specclient.toml"
        path.write_text(f'[targets.a]\nprovider = "vllm"\nbase_url = "{server.url}"\nmodel = "one"\n')
        with specclient.Client("a", config=path) as client:
            tracing = client.tracing
            path.write_text('[tracing]\nphases = "none"\n' + text if "[tracing]" not in text else text)
            with pytest.raises(specclient.ConfigError):
                client.reload()
            assert client.tracing is tracing
            client.chat.completions.create(messages=[])
        assert server.requests[0].json["model"] == "one"
