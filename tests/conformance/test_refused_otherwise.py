"""Refusals inside a 200, and endpoints that cannot be called as they were named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import specclient
from tests import server as scripted
from tests.conformance.all_doors import DOORS
from tests.doors import AsyncDoor, SyncDoor
from tests.providers.fixtures import ANSWER, Case
from tests.server import ScriptedServer

REFUSED: dict[str, dict[str, Any]] = {
    "by its code": {"message": "property 'prediction' is unsupported", "code": 400},
    "by its param": {"message": "Not here.", "param": "prediction", "code": "unsupported_parameter"},
    "in words": {"message": "Unrecognized request argument supplied: prediction", "code": None},
}


@pytest.fixture(params=[SyncDoor, AsyncDoor], ids=["sync", "async"])
def client(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[SyncDoor]:
    opened = request.param(server)
    yield opened
    opened.close()


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_a_refusal_inside_a_200_is_asked_again_once(
    client: SyncDoor, server: ScriptedServer, refused: dict[str, Any], streamed: bool
) -> None:
    client.make(overrides={"prediction": True}, max_retries=0)
    answer = {"error": refused}
    if streamed:
        event = b"data: " + json.dumps(answer).encode() + b"\n\n"
        server.play(scripted.stream(event), scripted.sse(scripted.chunk("ok"), scripted.finish()))
        report = client.read(prediction="known")[-1].specclient
    else:
        server.play(scripted.reply(answer), scripted.reply(scripted.completion("ok")))
        report = client.create(prediction="known").specclient
    assert ["prediction" in request.json for request in server.requests] == [True, False]
    assert report.prediction.outcome == "withheld"
    assert [reason.code for reason in report.prediction.reasons] == ["refused_live"]


@pytest.mark.parametrize("way", DOORS)
@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_through_every_door(
    server: ScriptedServer, tmp_path: Path, way: str, refused: dict[str, Any]
) -> None:
    server.play(scripted.reply({"error": refused}), scripted.reply(scripted.completion(ANSWER)))
    door = DOORS[way](server, tmp_path)
    try:
        seen = door.ask(Case("fireworks", "m", "refused", {}, b"", "application/json"))
    finally:
        door.close()
    assert ["prediction" in request.json for request in server.requests] == [True, False]
    assert (seen.text, seen.report.prediction.outcome) == (ANSWER, "withheld")


def test_another_error_inside_a_200_is_the_callers(client: SyncDoor, server: ScriptedServer) -> None:
    client.make(overrides={"prediction": True}, max_retries=0)
    server.play(scripted.reply({"error": {"message": "The prompt 'prediction' was filtered."}}))
    with pytest.raises(specclient.APIError, match="filtered"):
        client.create(prediction="known")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("provider", "hint"),
    [
        ("oci", r"https://inference\.generativeai\.REGION\.oci\.oraclecloud\.com/openai/v1"),
        ("bedrock", r"https://bedrock-runtime\.REGION"),
        ("azure", r"https://RESOURCE\.openai\.azure\.com"),
        ("databricks", "https://WORKSPACE/serving-endpoints"),
        ("sagemaker", "Name the server in the container"),
        ("openai_compatible", "has none of its own"),
    ],
)
def test_a_missing_address_is_named_with_its_form(provider: str, hint: str) -> None:
    with pytest.raises(specclient.ConfigError, match=hint):
        specclient.Client(provider=provider, model="m", api_key="k")


def test_an_endpoint_of_another_wire_format_says_what_to_use_instead(client: SyncDoor) -> None:
    client.make(provider="sagemaker")
    with pytest.raises(specclient.ConfigError, match=r"no chat API of OpenAI's shape .* as the provider"):
        client.create()
