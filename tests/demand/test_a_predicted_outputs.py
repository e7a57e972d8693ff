"""A: predicted outputs in practice. Where it may be sent, what became of it, and what it cost."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import specclient
from tests.conformance.all_doors import DOORS, FOREVER
from tests.doors import MESSAGES, SyncDoor
from tests.providers.fixtures import Case
from tests.server import ScriptedServer, chunk, completion, error, finish, reply, sse, usage_chunk

KNOWN = "def total(items):\n    return sum(items)\n"
OBJECT = {"type": "content", "content": KNOWN}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
WILLISON = {
    "prompt_tokens": 158,
    "completion_tokens": 226,
    "total_tokens": 384,
    "completion_tokens_details": {"accepted_prediction_tokens": 49, "rejected_prediction_tokens": 107},
}


def at(door: SyncDoor, provider: str, model: str = "m", **more: Any) -> None:
    """A client of the scripted server as if it were that provider, on any day."""
    url = door.server.origin if provider == "azure" else door.server.url
    until = {"prediction": {"until": FOREVER[provider]}} if provider in FOREVER else {}
    overrides = until | more.pop("overrides", {})
    door.make(provider=provider, model=model, base_url=url, overrides=overrides, **more)


def ask(door: SyncDoor, answer: Any = None, **arguments: Any) -> Any:
    """One call with the prediction: its report. `sent` is the body."""
    door.server.play(reply(completion()) if answer is None else answer)
    return door.create(**{"prediction": KNOWN, **arguments}).specclient


def sent(door: SyncDoor) -> dict[str, Any]:
    body: dict[str, Any] = door.server.requests[-1].json
    return body


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
    assert "prediction" not in sent(door)
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
    assert sent(door)["prediction"] == OBJECT
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


A6 = {
    "A6": ("fireworks", "reasoning", True, {}),
    "A6-details": ("fireworks", "reasoning_details", True, {}),
    "A6-documented-name": ("fireworks", "reasoning_content", False, {}),
    "A6-mistral": ("mistral", "reasoning_content", True, {}),
    "A6-cerebras": ("cerebras", "reasoning_content", True, {}),
    "A6-deepseek-keeps": ("deepseek", "reasoning_content", False, {}),
}


@pytest.mark.parametrize("way", DOORS)
@pytest.mark.parametrize(("provider", "key", "removed", "extra"), A6.values(), ids=A6)
def test_reasoning_in_the_history(
    way: str, server: ScriptedServer, tmp_path: Path, provider: str, key: str, removed: bool, extra: Any
) -> None:
    history = [*MESSAGES, {"role": "assistant", "content": "Hello.", key: "Hm."}, *MESSAGES]
    case = Case(provider, "gpt-oss-120b", "history", {"messages": history}, b"", "application/json")
    door = DOORS[way](server, tmp_path)
    server.respond = lambda _: reply(completion())
    try:
        seen = door.ask(case)
    finally:
        door.close()
    body = server.requests[-1].json
    assert ("prediction" in body) == (provider in ("fireworks", "cerebras"))
    assert (key not in body["messages"][1]) is removed
    assert body["messages"][1]["content"] == "Hello."
    assert ("reasoning_history" in {note.code for note in seen.report.notes}) is removed


PIECES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "A6-reasoning": (
        [chunk(reasoning="H"), chunk(reasoning="m", content=None), chunk("Yes")],
        {"reasoning": "Hm", "content": "Yes"},
    ),
    "A6-details": (
        [chunk(reasoning_details=[{"a": 1}]), chunk(reasoning_details=[{"b": 2}]), chunk("Yes")],
        {"reasoning_details": [{"a": 1}, {"b": 2}], "content": "Yes"},
    ),
    "A6-parts": (
        [chunk([{"type": "thinking", "thinking": "Hm"}]), chunk("Yes")],  # type: ignore[arg-type]
        {"reasoning_content": "Hm", "content": "Yes"},
    ),
}


@pytest.mark.parametrize(("chunks", "expected"), PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("provider", ["fireworks", "mistral", "openai_compatible"])
def test_a_streamed_answer_goes_back_as_a_message(
    door: SyncDoor, chunks: list[Any], expected: dict[str, Any], provider: str
) -> None:
    door.server.play(sse(*chunks, finish()), reply(completion()))
    door.make()

    async def areads() -> Any:
        async with door.client.chat.completions.stream(messages=MESSAGES) as events:
            return await events.get_final_completion()

    def reads() -> Any:
        with door.client.chat.completions.stream(messages=MESSAGES) as events:
            return events.get_final_completion()

    message = (door.run(areads()) if door.kind == "async" else reads()).choices[0].message
    assert message.to_dict().items() >= expected.items()
    at(door, provider)
    door.create(messages=[*MESSAGES, message, *MESSAGES])
    back = sent(door)["messages"][1]
    assert "content_parts" not in back
    if provider == "mistral" and "reasoning_content" in expected:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
        assert back["content"] == [thought, {"type": "text", "text": "Yes"}]
    else:
        assert back["content"] == "Yes"
    assert ("reasoning" in back, "reasoning_details" in back) == (
        provider == "openai_compatible" and "reasoning" in expected,
        provider == "openai_compatible" and "reasoning_details" in expected,
    )


def test_a7_unknown_fields_are_forwarded(door: SyncDoor) -> None:
    for provider in ("fireworks", "openai_compatible", "openrouter"):
        at(door, provider)
        ask(door, extra_body={"brand_new": {"a": [1]}})
        assert sent(door)["brand_new"] == {"a": [1]}


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


def test_a8_a9_what_it_cost(door: SyncDoor) -> None:
    at(door, "openai", "gpt-4o", prices={"input": 2.5, "output": 10.0})
    report = ask(door, reply(completion(usage=WILLISON)))
    got = report.prediction
    assert (got.accepted_tokens, got.rejected_tokens, got.extra_billed_tokens) == (49, 107, 107)
    assert report.usage.completion == 226, "billed"
    assert report.usage.completion - got.extra_billed_tokens == 119, "visible"
    assert got.acceptance_rate == 49 / 156
    assert (got.effect, got.source) == ("used", "provider_usage")
    assert report.economics.money_added == pytest.approx(107 * 10.0 / 1e6)


NULLS = {
    "A12": {
        "completion_tokens_details": {"accepted_prediction_tokens": None, "rejected_prediction_tokens": None}
    },
    "A12-no-pair": {"completion_tokens_details": {"reasoning_tokens": 0}},
    "A12-null-details": {"completion_tokens_details": None},
    "A12-no-details": {},
    "A12-nonsense": {"completion_tokens_details": {"accepted_prediction_tokens": "many"}},
    "A12-list": {"completion_tokens_details": []},
}


@pytest.mark.parametrize("details", NULLS.values(), ids=NULLS)
@pytest.mark.parametrize("provider", ["deepseek", "fireworks", "openai_compatible"])
def test_null_is_not_zero_and_costs_no_answer(door: SyncDoor, provider: str, details: dict[str, Any]) -> None:
    at(door, provider)
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7} | details
    for answer in (reply(completion("Hi", usage=usage)), sse(chunk("Hi"), finish(), usage_chunk(**usage))):
        door.server.play(answer)
    plain = door.create(prediction=KNOWN)
    streamed = door.read(prediction=KNOWN, stream_options={"include_usage": True})[-1].specclient
    assert plain.choices[0].message.content == "Hi"
    for report in (plain.specclient, streamed):
        got = report.prediction
        assert (got.accepted_tokens, got.rejected_tokens, got.acceptance_rate) == (None, None, None)
        assert report.usage.completion == 2


def test_a12_usage_itself_may_be_null(door: SyncDoor) -> None:
    at(door, "deepseek")
    report = ask(door, reply({**completion("Hi"), "usage": None}))
    assert (report.usage.prompt, report.usage.completion) == (None, None)


@pytest.mark.parametrize("provider", ["openai", "fireworks", "cerebras", "deepseek", "openai_compatible"])
@pytest.mark.parametrize("where", ["own chunk", "A14 with the finish", "A14 with choices of no text"])
def test_a13_a14_the_same_figures_streamed_or_not(door: SyncDoor, provider: str, where: str) -> None:
    at(door, provider, "gpt-4o" if provider == "openai" else "m")
    last: list[dict[str, Any]] = {
        "own chunk": [finish(), usage_chunk(**WILLISON)],
        "A14 with the finish": [finish("length") | {"usage": WILLISON}],
        "A14 with choices of no text": [finish(), chunk("") | {"usage": WILLISON}],
    }[where]
    plain = ask(door, reply(completion(usage=WILLISON)))
    door.server.play(sse(chunk("Hello"), *last))
    streamed = door.read(prediction=KNOWN)[-1].specclient
    assert streamed.prediction == plain.prediction
    assert streamed.usage == plain.usage
    assert streamed.usage.completion == 226


CONFLICTS = {
    "A16": ({"tools": TOOLS}, "tools"),
    "A16-functions": ({"functions": [{"name": "f"}]}, "tools"),
    "A16-n": ({"n": 2}, "n>1"),
    "A16-logprobs": ({"logprobs": True}, "logprobs"),
    "A16-top": ({"top_logprobs": 2, "logprobs": True}, "logprobs"),
    "A16-penalty": ({"presence_penalty": 0.1}, "presence_penalty>0"),
    "A16-other-penalty": ({"frequency_penalty": 0.1}, "frequency_penalty>0"),
    "A16-audio": ({"modalities": ["text", "audio"]}, "modalities"),
}


@pytest.mark.parametrize("provider", ["openai", "azure"])
@pytest.mark.parametrize(("arguments", "code"), CONFLICTS.values(), ids=CONFLICTS)
def test_the_callers_parameters_win(
    door: SyncDoor, provider: str, arguments: dict[str, Any], code: str
) -> None:
    at(door, provider, "gpt-4o")
    report = ask(door, **arguments)
    assert sent(door).items() >= arguments.items()
    assert "prediction" not in sent(door)
    assert [reason.code for reason in report.prediction.reasons] == [f"conflict:{code}"]
    at(door, provider, "gpt-4o", on_unsupported="error")
    with pytest.raises(specclient.PredictionRefusedError, match=code.partition(">")[0]):
        door.create(prediction=KNOWN, **arguments)
    assert len(door.server.requests) == 1


LIMITS = {
    "A18": ("openai", "gpt-5.1", {"max_tokens": 100}, {"max_completion_tokens": 100}),
    "A18-o3": ("openai", "o3-mini", {"max_tokens": 100}, {"max_completion_tokens": 100}),
    "A18-azure": ("azure", "gpt-5-mini", {"max_tokens": 100}, {"max_completion_tokens": 100}),
    "A18-mistral": ("mistral", "m", {"max_completion_tokens": 100}, {"max_tokens": 100}),
    "A18-as-it-is": ("mistral", "m", {"max_tokens": 100}, {"max_tokens": 100}),
    "A19": ("openai", "gpt-5.1", {"max_completion_tokens": 100}, {"max_completion_tokens": 100}),
    "A19-older": ("openai", "gpt-4-turbo", {"max_completion_tokens": 9}, {"max_completion_tokens": 9}),
    "A19-unknown": ("openai_compatible", "m", {"max_completion_tokens": 9}, {"max_completion_tokens": 9}),
    "A19-both": (
        "openai",
        "gpt-5.1",
        {"max_tokens": 5, "max_completion_tokens": 100},
        {"max_completion_tokens": 100},
    ),
    "A19-none": ("openai", "gpt-5.1", {}, {}),
}


@pytest.mark.parametrize(("provider", "model", "arguments", "expected"), LIMITS.values(), ids=LIMITS)
def test_exactly_one_limit(
    door: SyncDoor, provider: str, model: str, arguments: dict[str, int], expected: dict[str, int]
) -> None:
    at(door, provider, model)
    report = ask(door, prediction=None, **arguments)
    limits = {key: value for key, value in sent(door).items() if key.startswith("max_")}
    assert limits == expected
    assert any(note.code.startswith("length_") for note in report.notes) == (arguments != expected)


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
    assert sent(door)["prediction"] == OBJECT
    texts = [message["content"] for message in sent(door)["messages"]]
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


SILENT = {
    "A23": {},
    "A23-none": {"completion_tokens_details": None},
    "A23-other": {"prompt_tokens_details": {}},
}


@pytest.mark.parametrize("details", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize("provider", ["vllm", "sglang", "openai_compatible", "mistral", "fireworks"])
def test_a_200_does_not_prove_that_it_was_used(
    door: SyncDoor, provider: str, details: dict[str, Any]
) -> None:
    at(door, provider, overrides={"prediction": True})
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7} | details
    report = ask(door, reply(completion(usage=usage)))
    assert (report.prediction.outcome, report.prediction.effect) == ("forwarded", "unknown")


def test_a23_by_default_vllm_is_not_sent_one(door: SyncDoor) -> None:
    at(door, "vllm")
    report = ask(door)
    assert "prediction" not in sent(door)
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
        assert sent(door)["prediction"]["content"] == known
    assert (report.prediction.outcome == "forwarded") == (provider != "groq")
