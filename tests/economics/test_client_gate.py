"""The gate and the account through the client, against a played server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import specclient
from specclient.config import load_config
from tests.server import Request, ScriptedServer, completion, reply

USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 60,
    "total_tokens": 70,
    "completion_tokens_details": {"accepted_prediction_tokens": 40, "rejected_prediction_tokens": 10},
}


@pytest.fixture
def server(server: ScriptedServer) -> ScriptedServer:
    server.respond = lambda _: reply(completion("x", usage=USAGE))
    return server


def client(server: ScriptedServer, kind: Any = specclient.Client, **economics: Any) -> Any:
    return kind(
        provider="openai",
        model="gpt-4o",
        base_url=f"{server.url}/v1",
        api_key="k",
        prices={"output": 1000.0},
        economics=economics,
    )


def ask(client: Any, number: int = 0) -> Any:
    messages = [{"role": "user", "content": f"edit {number}"}]
    return client.chat.completions.create(messages=messages, prediction="known text " * 30)


def sent(request: Request) -> bool:
    return "prediction" in request.json


def test_by_default_every_prediction_goes_and_its_price_is_told(server: ScriptedServer) -> None:
    with client(server) as sdk:
        report = ask(sdk).specclient
    assert sent(server.requests[0])
    assert report.economics.gate == "always"
    assert report.economics.money_added == pytest.approx(0.01)
    assert report.economics.seconds_saved is None


def test_never_sends_none_and_says_so(server: ScriptedServer) -> None:
    with client(server, gate="never") as sdk:
        report = ask(sdk).specclient
    assert not sent(server.requests[0])
    assert report.prediction.outcome == "withheld"
    assert [reason.code for reason in report.prediction.reasons] == ["gate_never"]
    assert report.economics.decision == "never"


def test_auto_measures_both_ways_and_then_acts(server: ScriptedServer) -> None:
    with client(server, gate="auto") as sdk:
        reports = [ask(sdk).specclient for _ in range(20)]
    assert {sent(request) for request in server.requests[:16]} == {True, False}
    assert reports[0].prediction.reasons[-1].code == "gate_measure"
    last = reports[-1]
    assert last.prediction.reasons[-1].code in ("gate_evidence", "gate_explore")
    assert last.economics.calls_sent > 8
    assert last.economics.seconds_saved_per_token.low is not None


def test_async_alike(server: ScriptedServer) -> None:
    async def run() -> Any:
        async with client(server, specclient.AsyncClient, gate="never") as sdk:
            messages = [{"role": "user", "content": "x"}]
            return await sdk.chat.completions.create(messages=messages, prediction="known")

    answer = asyncio.run(run())
    assert not sent(server.requests[0])
    assert answer.specclient.economics.decision == "never"


def test_a_stream_alike(server: ScriptedServer) -> None:
    from tests.server import chunk, finish, role, sse, usage_chunk

    server.respond = lambda _: sse(role(), chunk("x"), finish(), usage_chunk(**USAGE))
    with client(server) as sdk:
        stream = sdk.chat.completions.create(
            messages=[{"role": "user", "content": "x"}], prediction="known", stream=True
        )
        last = list(stream)[-1]
    assert last.specclient.economics.money_added == pytest.approx(0.01)


def test_evidence_outlives_the_client_in_a_file(server: ScriptedServer, tmp_path: Path) -> None:
    state = str(tmp_path / "evidence.db")
    for _ in range(2):
        with client(server, gate="auto", state=state) as sdk:
            reports = [ask(sdk).specclient for _ in range(3)]
    assert reports[-1].economics.calls_sent + reports[-1].economics.calls_without == pytest.approx(6, abs=0.1)


def test_the_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "specclient.toml"
    path.write_text(
        '[targets.prod]\nprovider = "fireworks"\nmodel = "m"\n[targets.prod.economics]\n'
        'gate = "auto"\nholdout = 0.05\n'
    )
    target = specclient.config.resolve_target("prod", config=load_config(path))
    assert (target.economics.gate, target.economics.holdout) == ("auto", 0.05)
    path.write_text('[targets.prod]\nprovider = "fireworks"\n[targets.prod.economics]\nholdout = 2\n')
    with pytest.raises(specclient.ConfigError, match=r"economics\.holdout"):
        specclient.config.resolve_target("prod", config=load_config(path))


@pytest.mark.sdk
def test_a_wrapped_sdk_alike(server: ScriptedServer) -> None:
    openai = pytest.importorskip("openai")
    target = specclient.config.resolve_target(
        provider="openai",
        model="gpt-4o",
        base_url=f"{server.url}/v1",
        prices={"output": 1000.0},
        economics={"gate": "auto"},
    )
    reports = []
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as bare:
        sdk = specclient.wrap(bare, target=target)
        for _ in range(4):
            answer = sdk.chat.completions.create(
                model="gpt-4o",
                messages=[{"role": "user", "content": "x"}],
                prediction={"type": "content", "content": "known text"},
            )
            reports.append(specclient.report_of(answer))
    assert [sent(request) for request in server.requests] == [True, False, True, False]
    assert [report.economics.decision for report in reports] == ["measure"] * 4
    assert reports[0].economics.money_added == pytest.approx(0.01)
