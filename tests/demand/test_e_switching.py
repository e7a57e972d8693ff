"""E: configuration, provider switching, fallbacks."""

from __future__ import annotations

import logging
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import specclient
from specclient_providers import provider_names
from tests.conformance.all_doors import DOORS, FOREVER
from tests.doors import MESSAGES, SyncDoor
from tests.providers.fixtures import Case
from tests.server import ScriptedServer, chunk, completion, error, finish, reply, sse

KNOWN = "def total(items):\n    return sum(items)\n"
ON = date(2026, 11, 29)
MODELS = ["gpt-4o", "gpt-5", "gpt-oss-120b", "codestral-latest", "m"]


def at(door: SyncDoor, provider: str, model: str = "m", **more: Any) -> None:
    url = door.server.origin if provider == "azure" else door.server.url
    until = {"prediction": {"until": FOREVER[provider]}} if provider in FOREVER else {}
    overrides = until | more.pop("overrides", {})
    door.make(provider=provider, model=model, base_url=url, overrides=overrides, **more)


def chain(door: SyncDoor, folder: Path, **targets: str) -> None:
    """A client of a configuration of targets at the one server, each under a path of its name."""
    first = next(iter(targets))
    lines = [
        f'[targets.{name}]\nbase_url = "{door.server.origin}/{name}"\napi_key = "key-{name}"\n'
        f'model = "model-{name}"\n{more}\n'
        for name, more in targets.items()
    ]
    path = folder / "specclient.toml"
    path.write_text("\n".join(lines))
    door.make(target=first, config=path)


def tried(door: SyncDoor) -> list[str]:
    return [request.path.split("/")[1] for request in door.server.requests]


CYCLES = {
    "E1": {"a": 'fallback = ["b"]', "b": 'fallback = ["a"]'},
    "E1-itself": {"a": 'fallback = ["a", "b"]', "b": 'fallback = ["b"]'},
    "E1-twice": {"a": 'fallback = ["b", "b"]', "b": ""},
    "E1-three": {"a": 'fallback = ["b"]', "b": 'fallback = ["c", "a"]', "c": 'fallback = ["b"]'},
}


@pytest.mark.parametrize("targets", CYCLES.values(), ids=CYCLES)
def test_bad_keys_are_tried_once_each(
    door: SyncDoor, tmp_path: Path, waits: list[float], targets: dict[str, str]
) -> None:
    provider = 'provider = "openai_compatible"\n'
    chain(door, tmp_path, **{name: provider + more for name, more in targets.items()})
    door.server.respond = lambda r: error(401, f"bad {r.headers['authorization'][-5:]}, {r.path[1]}")
    with pytest.raises(specclient.AuthenticationError) as caught:
        door.create()
    assert tried(door) == list(targets)
    for name in targets:
        assert f"{name}: OpenAI-compatible address answered 401" in str(caught.value)
        assert f"key-{name}" not in str(caught.value)
    assert waits == []


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "unsupported value", param="temperature"),
        error(404, "no such model"),
        error(422, "extra"),
        error(413, "too large"),
        reply(b"<html>", 200),
        reply({"nothing": 1}),
    ],
    ids=["E3", "E3-404", "E3-422", "E3-413", "E3-page", "E3-no-answer"],
)
def test_a_refusal_goes_to_the_next_target_at_once(
    door: SyncDoor, tmp_path: Path, waits: list[float], answer: Any
) -> None:
    chain(door, tmp_path, a='provider = "mistral"\nfallback = ["b"]', b='provider = "openai"')
    door.server.play(answer, reply(completion()))
    report = door.create(max_completion_tokens=5).specclient
    assert (tried(door), waits, report.target) == (["a", "b"], [], "b")
    first, second = (request.json for request in door.server.requests)
    assert (first["model"], first.get("max_tokens")) == ("model-a", 5)
    assert (second["model"], second.get("max_completion_tokens")) == ("model-b", 5)
    assert [r.headers["authorization"] for r in door.server.requests] == ["Bearer key-a", "Bearer key-b"]


def test_e3_what_cannot_be_sent_anywhere_is_tried_nowhere(door: SyncDoor, tmp_path: Path) -> None:
    chain(door, tmp_path, a='provider = "openai_compatible"\nfallback = ["b"]', b='provider = "groq"')
    with pytest.raises(specclient.ConfigError, match="temperature"):
        door.create(temperature=float("nan"))
    assert door.server.requests == []


@pytest.mark.parametrize("provider", provider_names())
def test_e5_e8_one_source_for_asking_and_sending(provider: str) -> None:
    for model in MODELS:
        for api in ("chat", "completions", "responses"):
            told = specclient.capabilities(provider, model=model, api=api, on=ON).prediction
            content = {"prompt": "x"} if api == "completions" else {"messages": MESSAGES}
            url = "https://r.openai.azure.com" if provider == "azure" else None
            plan = specclient.plan(
                {**content, "prediction": KNOWN}, provider=provider, model=model, api=api, base_url=url, on=ON
            )
            by_prompt = "tags" in told.shapes
            assert told.supported == (plan.outcome in ("forwarded", "local") or by_prompt), (model, api)
            assert ("prediction" in plan.body) == (told.supported and not by_prompt)


BASES = {
    "E7": ("azure", "gpt-5-chat", "gpt-4o-2024-11-20", {"max_tokens": 5}, {"max_tokens": 5}, "forwarded"),
    "E7-free-name": ("azure", "writer", "gpt-5", {"max_tokens": 5}, {"max_completion_tokens": 5}, "withheld"),
    "E7-openai": ("openai", "ft:gpt-4o:acme", "gpt-4o", {"max_tokens": 5}, {"max_tokens": 5}, "forwarded"),
    "E7-mistral": ("mistral", "mine", "codestral-latest", {"max_tokens": 5}, {"max_tokens": 5}, "forwarded"),
}


@pytest.mark.parametrize(
    ("provider", "model", "base", "given", "expected", "outcome"), BASES.values(), ids=BASES
)
def test_rules_follow_the_base_model(
    door: SyncDoor, provider: str, model: str, base: str, given: Any, expected: Any, outcome: str
) -> None:
    at(door, provider, model, overrides={"base_model": base})
    door.server.play(reply(completion()))
    report = door.create(prediction=KNOWN, **given).specclient
    body = door.server.requests[-1].json
    assert {key: body[key] for key in body if key.startswith("max_")} == expected
    assert (body["model"], report.prediction.outcome) == (model, outcome)


CHANGES = {
    "E10": ("openai", "gpt-5", {"max_tokens": 5}, "length_renamed"),
    "E10-duplicate": ("openai", "gpt-5", {"max_tokens": 5, "max_completion_tokens": 6}, "length_duplicate"),
    "E10-stream-options": ("openai", "gpt-5", {"stream_options": {}}, "stream_options_without_stream"),
    "E10-history": (
        "fireworks",
        "m",
        {"messages": [*MESSAGES, {"role": "assistant", "content": "x", "reasoning": "y"}, *MESSAGES]},
        "reasoning_history",
    ),
}


@pytest.mark.parametrize("way", DOORS)
@pytest.mark.parametrize(("provider", "model", "request_", "code"), CHANGES.values(), ids=CHANGES)
def test_what_was_changed_is_told(
    way: str,
    server: ScriptedServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    provider: str,
    model: str,
    request_: dict[str, Any],
    code: str,
) -> None:
    caplog.set_level(logging.INFO, "specclient")
    server.respond = lambda _: reply(completion())
    case = Case(provider, model, "changed", {"messages": MESSAGES, **request_}, b"", "application/json")
    opened = DOORS[way](server, tmp_path)
    try:
        seen = opened.ask(case)
    finally:
        opened.close()
    assert code in [note.code for note in seen.report.notes]
    (line,) = (record.message for record in caplog.records if code in record.message)
    assert f"changed: {code}" in line


def test_e10_a_changed_parameter_is_on_the_span(door: SyncDoor) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from tests.tracing.tracing_helpers import Backend

    backend = Backend()
    at(door, "openai", "gpt-5", tracing=backend.options())
    door.server.respond = lambda _: reply(completion())
    door.create(max_tokens=5, stream_options={})
    door.create()
    first, second = backend.finished()
    told = first.attributes["specclient.request.changed"]
    assert told == ("length_renamed", "stream_options_without_stream")
    assert "specclient.request.changed" not in second.attributes
    backend.tracer_provider.shutdown()
    backend.meter_provider.shutdown()


@pytest.mark.parametrize(
    "provider", ["openai", "azure", "groq", "vllm", "xai", "openai_compatible", "mistral"]
)
@pytest.mark.parametrize("policy", ["withhold", "error"])
def test_e11_only_a_hint_is_ever_dropped_whatever_the_policy(
    door: SyncDoor, provider: str, policy: str
) -> None:
    at(door, provider, "gpt-5", on_unsupported=policy)
    given = {
        "stop": ["END"],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "n": 2,
        "response_format": {"type": "json_object"},
        "logit_bias": {"1": 2},
        "presence_penalty": 0,
        "seed": 7,
        "extra_body": {"min_p": 0.1, "their_own": {"a": 1}},
    }
    door.server.play(reply(completion()))
    door.create(**given)
    sent = door.server.requests[-1].json
    beyond: dict[str, Any] = given.pop("extra_body")  # type: ignore[assignment]
    assert sent.items() >= {**given, **beyond}.items()


@pytest.mark.parametrize("provider", provider_names())
def test_e13_nothing_set_nothing_sent(provider: str) -> None:
    url = "https://r.openai.azure.com" if provider == "azure" else None
    for stream in ({}, {"stream": True}):
        plan = specclient.plan({"messages": MESSAGES, **stream}, provider=provider, model="m", base_url=url)
        ours = {note.code for note in plan.notes if note.code.startswith("opt_in:")}
        assert len(plan.body.keys() - {"model", "messages", "stream"}) <= len(ours)
        assert plan.body["messages"] == MESSAGES


def test_e13_an_explicit_zero_is_sent_with_a_warning(door: SyncDoor) -> None:
    at(door, "xai")
    door.server.play(reply(completion()))
    report = door.create(presence_penalty=0).specclient
    assert door.server.requests[-1].json["presence_penalty"] == 0
    assert [note.code for note in report.notes] == ["caution:presence_penalty"]


@pytest.mark.parametrize("provider", ["openai", "fireworks", "cerebras", "azure", "mistral", "groq"])
def test_e14_responses_take_no_prediction(provider: str) -> None:
    url = "https://r.openai.azure.com" if provider == "azure" else None
    plan = specclient.plan(
        {"input": "x", "prediction": KNOWN},
        provider=provider,
        model="gpt-4o",
        api="responses",
        base_url=url,
        on=ON,
    )
    assert (plan.outcome, "prediction" in plan.body) == ("withheld", False)
    assert plan.reasons


def test_e15_a_learned_refusal_is_scoped_visible_and_can_be_cleared(door: SyncDoor) -> None:
    at(door, "fireworks", "one")
    refusal = reply({"error": {"message": "property 'prediction' is unsupported"}}, 400)
    door.server.play(refusal, reply(completion()))
    door.create(prediction=KNOWN)
    (held,) = door.client.learned.entries()
    assert (held.model, held.key, held.url) == ("one", "prediction", f"{door.server.url}/chat/completions")
    door.server.respond = lambda _: reply(completion())
    door.create(prediction=KNOWN, model="two")
    assert "prediction" in door.server.requests[-1].json, "another model is another matter"
    door.create(prediction=KNOWN)
    assert "prediction" not in door.server.requests[-1].json
    assert door.client.learned.clear() == 1
    door.create(prediction=KNOWN)
    assert "prediction" in door.server.requests[-1].json


def test_e16_a_cap_is_told_and_not_clamped(door: SyncDoor) -> None:
    at(door, "openai_compatible")
    text = "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"
    door.server.play(error(400, text, param="max_tokens"))
    with pytest.raises(specclient.BadRequestError, match="at most 16384") as caught:
        door.create(max_tokens=99999)
    assert caught.value.param == "max_tokens"
    assert [request.json["max_tokens"] for request in door.server.requests] == [99999]


MEANING = {
    "E17": {"stop": ["END"]},
    "E17-tools": {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "E17-schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}},
    "E17-n": {"n": 2},
}


@pytest.mark.parametrize("given", MEANING.values(), ids=MEANING)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_carries_meaning_is_refused_aloud(door: SyncDoor, given: dict[str, Any], streamed: bool) -> None:
    at(door, "fireworks")
    (name,) = given
    door.server.respond = lambda r: (
        error(400, f"property '{name}' is unsupported", param=name)
        if name in r.json
        else (sse(chunk("x"), finish()) if streamed else reply(completion()))
    )
    with pytest.raises(specclient.BadRequestError, match=name):
        door.create(prediction=KNOWN, stream=streamed, **given)
    assert len(door.server.requests) == 1


REFUSED_TEMPERATURE = error(
    400,
    "Unsupported value: 'temperature' does not support 0 with this model.",
    param="temperature",
    code="unsupported_value",
)


@pytest.mark.parametrize("given", [{}, {"temperature": 0}, {"temperature": None}], ids=["E13", "own", "none"])
def test_e13_an_edits_own_temperature_costs_no_edit(
    door: SyncDoor, tmp_path: Path, given: dict[str, Any]
) -> None:
    path = tmp_path / "f.py"
    path.write_text("foo = 1\n")
    at(door, "openai", "gpt-5")
    door.server.respond = lambda r: (
        REFUSED_TEMPERATURE if "temperature" in r.json else sse(chunk("bar = 1\n"), finish())
    )
    if given.get("temperature") == 0:
        with pytest.raises(specclient.BadRequestError, match="temperature"):
            door.run(door.client.edit(path, "rename", write=True, **given))
        return
    door.run(door.client.edit(path, "rename", write=True, **given))
    assert path.read_text() == "bar = 1\n"
    assert ["temperature" in r.json for r in door.server.requests] == [True, False][bool(given) :]


def test_e13_another_refusal_of_an_edit_is_told(door: SyncDoor, tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text("foo = 1\n")
    door.server.play(error(400, "context too long", param="messages"))
    with pytest.raises(specclient.BadRequestError, match="too long"):
        door.run(door.client.edit(path, "rename"))
    assert len(door.server.requests) == 1


USE_OTHER = "Unsupported parameter: '{}' is not supported with this model. Use '{}' instead."
LIMITS = {
    "A18-newer": ("openai", "next-mini", "max_tokens", "max_completion_tokens"),
    "A18-deployment": ("azure", "writer", "max_tokens", "max_completion_tokens"),
    "A18-unknown-host": ("openai_compatible", "m", "max_completion_tokens", "max_tokens"),
}


@pytest.mark.parametrize(("provider", "model", "given", "taken"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("form", ["words", "loc"])
def test_a_limit_goes_under_the_name_that_the_model_takes(
    door: SyncDoor, waits: list[float], provider: str, model: str, given: str, taken: str, form: str
) -> None:
    at(door, provider, model)
    located = {"detail": [{"type": "extra_forbidden", "loc": ["body", given], "msg": "Extra inputs"}]}
    refused = error(400, USE_OTHER.format(given, taken), param=given, code="unsupported_parameter")
    door.server.respond = lambda r: (
        (refused if form == "words" else reply(located, 422)) if given in r.json else reply(completion())
    )
    for _ in range(2):
        report = door.create(**{given: 7}).specclient
        assert "length_renamed" in report.changed
    sent = [{key: r.json[key] for key in r.json if key.startswith("max_")} for r in door.server.requests]
    assert sent == [{given: 7}, {taken: 7}, {taken: 7}], "the second call knows the name"
    assert waits == []


def test_a18_a_host_that_takes_neither_name_is_asked_twice(door: SyncDoor) -> None:
    at(door, "openai_compatible")
    door.server.respond = lambda r: error(
        400, f"Unsupported parameter: '{next(key for key in r.json if key.startswith('max_'))}'"
    )
    with pytest.raises(specclient.BadRequestError, match="max_completion_tokens"):
        door.create(max_tokens=7)
    assert len(door.server.requests) == 2


@pytest.mark.parametrize("way", DOORS)
def test_a18_the_same_through_every_door(way: str, server: ScriptedServer, tmp_path: Path) -> None:
    server.respond = lambda r: (
        error(400, USE_OTHER.format("max_tokens", "max_completion_tokens"), param="max_tokens")
        if "max_tokens" in r.json
        else reply(completion())
    )
    case = Case(
        "openai", f"next-{way}", "limit", {"messages": MESSAGES, "max_tokens": 7}, b"", "application/json"
    )
    opened = DOORS[way](server, tmp_path)
    try:
        seen = opened.ask(case)
    finally:
        opened.close()
    assert [r.json.get("max_completion_tokens") for r in server.requests] == [None, 7]
    assert "length_renamed" in seen.report.changed
