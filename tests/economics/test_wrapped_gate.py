"""The gate under a wrapped SDK: for an endpoint without a target, and for the engine behind `local://`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_client_gate import USAGE, sent

import specclient
from specclient.economics import EconomicsOptions
from specclient.economics.stores import _stores
from tests.server import Request, ScriptedServer, completion, reply

KNOWN = "known text " * 30


@pytest.fixture(autouse=True)
def no_evidence() -> Iterator[None]:
    _stores.clear()
    yield
    _stores.clear()


@pytest.fixture
def server(server: ScriptedServer) -> ScriptedServer:
    server.respond = lambda _: reply(completion("x", usage=USAGE))
    return server


def ask(client: httpx.Client, url: str, prediction: str | None = KNOWN) -> Any:
    body: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "edit"}]}
    if prediction is not None:
        body["prediction"] = {"type": "content", "content": prediction}
    return client.post(f"{url}/v1/chat/completions", json=body).json()["specclient"]


def wrapped(**options: Any) -> httpx.Client:
    return specclient.wrap(httpx.Client(), provider="openai", **options)


def test_without_options_every_prediction_goes(server: ScriptedServer) -> None:
    with wrapped(prices={"output": 1000.0}) as client:
        report = ask(client, server.url)
        bare = ask(client, server.url, None)
    assert sent(server.requests[0])
    assert report["economics"]["gate"] == "always"
    assert report["economics"]["money_added"] == pytest.approx(0.01)
    assert "economics" not in bare


def test_never_withholds(server: ScriptedServer) -> None:
    with wrapped(economics={"gate": "never"}) as client:
        report = ask(client, server.url)
    assert not sent(server.requests[0])
    assert report["prediction"]["reasons"][0]["code"] == "gate_never"


def test_auto_measures_each_endpoint_by_itself(server: ScriptedServer) -> None:
    with ScriptedServer() as other, wrapped(economics={"gate": "auto"}) as client:
        other.respond = server.respond
        for _ in range(3):
            ask(client, server.url)
        ask(client, other.url)
    assert [sent(request) for request in server.requests] == [True, False, True]
    assert [sent(request) for request in other.requests] == [True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"economics": {"gate": "perhaps"}}, r"economics\.gate"),
        ({"economics": {"holdout": 1}}, r"economics\.holdout"),
        ({"prices": {"outputs": 1}}, "no price for 'outputs'"),
        ({"prices": {"output": -1}}, "price per million"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    with httpx.Client() as client, pytest.raises(specclient.ConfigError, match=words):
        specclient.wrap(client, **options)


def test_options_may_be_an_object(server: ScriptedServer) -> None:
    with wrapped(economics=EconomicsOptions(gate="never")) as client:
        ask(client, server.url)
    assert not sent(server.requests[0])


def test_a_limit_that_cannot_be_kept_is_said(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a price nobody knows what a saved second costs."""
    options = {"gate": "auto", "max_money_per_second": 0.1}
    with wrapped(economics=options) as client:
        ask(client, server.url)
        ask(client, server.url)
    assert caplog.text.count("has no effect without prices.output") == 1
    with wrapped(economics=options, prices={"output": 1.0}) as client:
        ask(client, server.url)
    assert caplog.text.count("has no effect") == 1


def test_wrapping_again_with_another_gate_is_refused(server: ScriptedServer) -> None:
    with wrapped(economics={"gate": "auto"}) as client:
        specclient.wrap(client, provider="openai", economics={"gate": "auto"})
        with pytest.raises(specclient.ConfigError, match="wrapped already"):
            specclient.wrap(client, provider="openai", economics={"gate": "never"})


def test_arguments_win_over_the_target(server: ScriptedServer, tmp_path: Path) -> None:
    target = specclient.config.resolve_target(
        provider="openai", model="gpt-4o", base_url=f"{server.url}/v1", economics={"gate": "never"}
    )
    with specclient.wrap(httpx.Client(), target=target, economics={"gate": "always"}) as client:
        ask(client, server.url)
    assert sent(server.requests[0])


def test_workloads_are_kept_apart(server: ScriptedServer) -> None:
    with wrapped(economics={"gate": "auto"}) as client:
        for name in ("edits", "chat", "edits", "chat"):
            with specclient.workload(name):
                ask(client, server.url)
    assert [sent(request) for request in server.requests] == [True, True, False, False]


@pytest.mark.parametrize("by", ["argument", "target"])
def test_the_engine_passes_the_gate_too(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.client.fake_engine import FakeEngine

    engine = FakeEngine()
    options: dict[str, Any] = {"economics": {"gate": "never"}}
    if by == "target":
        options = {"target": specclient.config.resolve_target(provider="local", model="tiny", **options)}
    with specclient.wrap(httpx.Client(), engine=engine, **options) as client:
        report = ask(client, "local://engine")
    assert report["prediction"]["outcome"] == "withheld"
    assert report["economics"]["decision"] == "never"
    assert engine.requests[-1].predictions == ()


def test_what_a_request_says_is_no_business_of_the_gate(server: ScriptedServer) -> None:
    seen: list[Request] = []
    server.respond = lambda request: (seen.append(request), reply(completion("x", usage=USAGE)))[1]
    with wrapped(economics={"gate": "never"}) as client:
        ask(client, server.url, None)
    assert "prediction" not in seen[0].json
