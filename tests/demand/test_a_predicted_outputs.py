"""A: where a prediction may be sent, and what becomes of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import specclient
from tests.conformance.all_doors import FOREVER
from tests.demand.predicting import KNOWN, OBJECT, ask, at
from tests.doors import MESSAGES, SyncDoor
from tests.server import chunk, completion, error, finish, reply, sse

A1 = {
    "A1": ("azure", "gpt-4o", {"api_version": "2024-10-21"}, "api_version"),
    "A1-older": ("azure", "gpt-4o-mini", {"api_version": "2024-06-01"}, "api_version"),
    "A1-last-without": ("azure", "gpt-4.1", {"api_version": "2024-12-01-preview"}, "api_version"),
    "A1-model-version": ("azure", "gpt-4o-2024-05-13", {"api_version": "2025-04-01-preview"}, "model"),
    "A1-deployment": ("azure", "my-writer", {"api_version": "2025-04-01-preview"}, "model"),
    "A1-name-alone": ("groq", "gpt-4o", {}, "rejected"),
    "A1-unknown-host": ("openai_compatible", "gpt-4o", {}, "undocumented"),
    "A1-newer-family": ("openai", "gpt-5.1", {}, "rejected"),
}


@pytest.mark.parametrize(("provider", "model", "more", "code"), A1.values(), ids=A1)
def test_not_sent_where_it_is_not_documented(
    door: SyncDoor, provider: str, model: str, more: dict[str, Any], code: str
) -> None:
    at(door, provider, model, **more)
    report = ask(door)
    assert "prediction" not in door.sent
    assert (report.prediction.outcome, report.prediction.effect) == ("withheld", "unused")
    assert [reason.code for reason in report.prediction.reasons] == [code]
    assert len(door.server.requests) == 1


@pytest.mark.parametrize(
    ("provider", "more"),
    [
        ("azure", {"api_version": "2024-10-21"}),
        ("groq", {}),
        ("openai_compatible", {}),
        ("vllm", {}),
        ("deepseek", {}),
        ("xai", {}),
    ],
)
@pytest.mark.parametrize(
    "said", [True, "documented", {"state": "documented"}], ids=["A3", "A3-word", "A3-table"]
)
def test_the_configuration_corrects_a_stale_table(
    door: SyncDoor, provider: str, more: dict[str, Any], said: Any
) -> None:
    at(door, provider, overrides={"prediction": said}, **more)
    report = ask(door)
    assert door.sent["prediction"] == OBJECT
    assert report.prediction.outcome == "forwarded"


REFUSALS = {
    "A4-groq": (400, {"error": {"message": "property 'prediction' is unsupported"}}),
    "A4-azure": (400, {"error": {"message": "Unrecognized request argument supplied: prediction"}}),
    "A4-openai": (400, {"error": {"message": "Unsupported parameter", "param": "prediction"}}),
    "A4-fastapi": (
        422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "prediction"], "msg": "no"}]},
    ),
    "A4-go": (400, {"error": 'json: unknown field "prediction"'}),
}


@pytest.mark.parametrize(("status", "body"), REFUSALS.values(), ids=REFUSALS)
def test_a_live_refusal_is_asked_again_once_and_remembered(
    door: SyncDoor, waits: list[float], status: int, body: Any
) -> None:
    at(door, "fireworks")
    door.server.play(reply(body, status))
    first, second = ask(door), ask(door)
    assert ["prediction" in request.json for request in door.server.requests] == [True, False, False]
    for report, code in ((first, "refused_live"), (second, "refused_before")):
        assert report.prediction.outcome == "withheld"
        assert [reason.code for reason in report.prediction.reasons] == [code]
    assert waits == []


def test_a4_another_refusal_is_the_callers(door: SyncDoor) -> None:
    at(door, "fireworks")
    door.server.play(error(400, "temperature must be below 2; your prediction is fine", param="temperature"))
    with pytest.raises(specclient.BadRequestError):
        door.create(prediction=KNOWN)
    assert len(door.server.requests) == 1


@pytest.mark.parametrize("prefer", [True, False])
def test_a7_the_target_that_can_use_it_is_chosen(door: SyncDoor, tmp_path: Path, prefer: bool) -> None:
    config = tmp_path / "specclient.toml"
    config.write_text(
        f'[targets.a]\nprovider = "groq"\nmodel = "m"\napi_key = "k"\nbase_url = "{door.server.origin}/a"\n'
        f'fallback = ["b"]\nprefer_prediction = {str(prefer).lower()}\n'
        '[targets.b]\nprovider = "fireworks"\nmodel = "m"\napi_key = "k"\n'
        f'base_url = "{door.server.origin}/b"\n'
    )
    door.make(target="a", config=config)
    assert ask(door).target == ("b" if prefer else "a")
    assert ask(door, prediction=None).target == "a", "without a prediction the order stays"


def test_a20_a_callable_is_evaluated_once_for_all_tries(
    door: SyncDoor, waits: list[float], tmp_path: Path
) -> None:
    config = tmp_path / "specclient.toml"
    config.write_text(
        "".join(
            f'[targets.{name}]\nprovider = "fireworks"\nmodel = "{name}"\napi_key = "k"\n'
            f'base_url = "{door.server.url}"\nmax_retries = 1\n{more}\n'
            for name, more in (("a", 'fallback = ["b"]'), ("b", ""))
        )
    )
    door.make(target="a", config=config)
    calls: list[Any] = []

    def known(context: Any) -> str:
        calls.append(context["messages"])
        return KNOWN

    door.server.play(error(500, "no"), error(500, "no"), error(500, "no"))
    report = ask(door, prediction=known)
    assert calls == [MESSAGES]
    assert [request.json["prediction"] for request in door.server.requests] == [OBJECT] * 4
    assert report.prediction.outcome == "forwarded"


def test_a21_one_call_takes_the_file(door: SyncDoor, tmp_path: Path) -> None:
    path = tmp_path / "sums.py"
    path.write_text(KNOWN)
    at(door, "fireworks")
    door.server.play(sse(chunk(KNOWN.replace("items", "values")), finish()))
    edit = door.run(door.client.edit(path, "rename items to values", write=True))
    assert door.sent["prediction"] == OBJECT
    texts = [message["content"] for message in door.sent["messages"]]
    assert sum(text.count(KNOWN) for text in texts) == 1
    assert path.read_text() == KNOWN.replace("items", "values")
    assert edit.report.prediction.outcome == "forwarded"


@pytest.mark.parametrize("provider", ["openai", "fireworks", "cerebras", "groq"])
@pytest.mark.parametrize("stream", [False, True])
def test_a22_on_and_off_differ_in_that_key_alone(door: SyncDoor, provider: str, stream: bool) -> None:
    model = {"openai": "gpt-4o", "cerebras": "gpt-oss-120b"}.get(provider, "m")
    at(door, provider, model)
    door.server.respond = lambda _: sse(chunk("a"), finish()) if stream else reply(completion())
    for known in (KNOWN, None):
        opened = door.create(prediction=known, temperature=0, stop=["x"], stream=stream)
        if stream:
            door.run(opened.close())
    on, off = (request.json for request in door.server.requests)
    assert {key: value for key, value in on.items() if key != "prediction"} == off
    assert ("prediction" in on) == (provider != "groq")
    request = {"messages": MESSAGES, "temperature": 0, "stop": ["x"], "stream": stream}
    overrides = {"prediction": {"until": FOREVER[provider]}} if provider in FOREVER else {}
    shown = specclient.plan(request, provider=provider, model=model, overrides=overrides, prediction=KNOWN)
    assert {k: v for k, v in shown.body.items() if k != "stream" or v} == on, "the dry run shows what is sent"


def test_a23_by_default_vllm_is_not_sent_one(door: SyncDoor) -> None:
    at(door, "vllm")
    report = ask(door)
    assert "prediction" not in door.sent
    assert report.prediction.outcome == "withheld"


def test_a26_a_row_carries_source_date_and_status() -> None:
    for provider, model in (("cerebras", "gpt-oss-120b"), ("azure", "gpt-4o"), ("fireworks", "m")):
        row = specclient.capabilities(provider, model=model, on=date(2026, 11, 29)).prediction
        assert row.source.startswith("https://")
        assert (row.supported, row.preview, row.checked) == (True, True, date(2026, 11, 29))
    gone = specclient.capabilities("cerebras", model="zai-glm-4.7", on=date(2026, 11, 29)).prediction
    assert (gone.supported, gone.why_not) == (False, "model")


def test_a27_an_alias_is_told_apart_and_the_policy_decides(door: SyncDoor) -> None:
    at(door, "mistral", "mistral-large-latest")
    report = ask(door)
    assert "alias" in report.prediction.reasons[0].text
    assert report.prediction.outcome == "withheld"
    at(door, "mistral", "mistral-large-latest", overrides={"prediction": True})
    assert ask(door).prediction.outcome == "forwarded"
    disputed = specclient.capabilities("mistral", model="codestral-latest").prediction
    assert (disputed.certainty, disputed.rejected_charged) == ("disputed", False)
    assert specclient.capabilities("openai", model="gpt-4o").prediction.rejected_charged is True


ODD = {
    "A-half-a-pair": "a\ud83db",
    "A-nul": "a\0b",
    "A-crlf": "a\r\nb",
    "A-separator": "a\u2028b",
    "A-blank": " ",
}


@pytest.mark.parametrize("known", ODD.values(), ids=ODD)
@pytest.mark.parametrize("provider", ["fireworks", "mistral", "openai", "groq"])
def test_any_text_may_be_predicted(door: SyncDoor, provider: str, known: str) -> None:
    at(door, provider, {"mistral": "codestral-latest", "openai": "gpt-4o"}.get(provider, "m"))
    report = ask(door, prediction=known)
    if report.prediction.outcome == "forwarded":
        assert door.sent["prediction"]["content"] == known
    assert (report.prediction.outcome == "forwarded") == (provider != "groq")
