"""The embedded engine as a target, over an engine that plays a script."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import specclient
from specclient_engine.errors import ContextTooLong, EngineClosed, NotEnoughMemory, UnsupportedRequest
from tests.client.fake_engine import FakeEngine
from tests.doors import MESSAGES, SyncDoor, text_of


def make(door: SyncDoor, engine: FakeEngine, **arguments: Any) -> FakeEngine:
    door.make(provider="local", base_url=None, api_key=None, model="tiny", engine=engine, **arguments)
    return engine


def test_a_plain_answer(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("Hel", "lo"))
    answer = door.create(prediction="Hello")
    assert answer.choices[0].message.content == "Hello"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "tiny"
    details = answer.usage.completion_tokens_details
    assert (details.accepted_prediction_tokens, details.rejected_prediction_tokens) == (7, 3)
    assert engine.requests[0].predictions == ("Hello",)
    assert engine.messages[0] == (MESSAGES, None)


def test_its_report(door: SyncDoor) -> None:
    make(door, FakeEngine("Hel", "lo"))
    for report in (door.create(prediction="Hello").specclient, door.read(prediction="Hello")[-1].specclient):
        prediction, timing = report.prediction, report.timing
        assert (prediction.outcome, prediction.effect, prediction.source) == ("local", "used", "engine")
        assert (prediction.accepted_tokens, prediction.rejected_tokens) == (7, 3)
        assert prediction.extra_billed_tokens == 0
        for phase, seconds in ((timing.queue, 0.001), (timing.prefill, 0.002), (timing.decode, 0.006)):
            assert (phase.seconds, phase.source) == (pytest.approx(seconds), "engine")
        assert report.speculation.by_source == {"prediction": (10, 7)}
        assert (report.usage.prompt, report.usage.completion) == (3, 5)
        assert report.notes == ()


def test_a_withheld_prediction_is_unused(door: SyncDoor) -> None:
    make(door, FakeEngine("Hello"), economics={"gate": "never"})
    for report in (door.create(prediction="Hello").specclient, door.read(prediction="Hello")[-1].specclient):
        assert (report.prediction.outcome, report.prediction.effect) == ("withheld", "unused")
    assert door.create().specclient.prediction.effect == "unknown"


def test_a_stream(door: SyncDoor) -> None:
    make(door, FakeEngine("Hel", "lo", finish="length"))
    chunks = door.read()
    assert [c.choices[0].delta.content for c in chunks] == ["", "Hel", "lo", None]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "length"
    assert len({c.id for c in chunks}) == 1
    assert chunks[-1].object == "chat.completion.chunk"


def test_usage_in_a_stream_only_when_asked_for(door: SyncDoor) -> None:
    make(door, FakeEngine("Hello"))
    assert all(c.usage is None for c in door.read())
    last = door.read(stream_options={"include_usage": True})[-1]
    assert last.choices == []
    assert last.usage.completion_tokens == 5
    assert last.specclient is not None


def test_parameters_reach_the_engine(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("x"))
    door.create(
        temperature=0.5,
        top_p=0.9,
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        stop="END",
        max_completion_tokens=9,
        logit_bias={"5": -100},
        tools=[{"type": "function"}],
        extra_body={
            "top_k": 4,
            "min_p": 0.1,
            "repetition_penalty": 1.1,
            "speculation": "off",
            "cache_salt": "s",
        },
    )
    request = engine.requests[0]
    assert (request.max_tokens, request.stop, request.speculation) == (9, ("END",), "off")
    assert request.cache_salt == "s"
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.5, 0.9, 4, 7)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.1, 0.2)
    assert (sampling.min_p, sampling.repetition_penalty) == (0.1, 1.1)
    assert dict(sampling.logit_bias) == {5: -100.0}
    assert engine.messages[0][1] == [{"type": "function"}]


def test_defaults_are_greedy_and_unlimited(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("x"))
    door.create()
    assert engine.requests[0].sampling.temperature == 0
    assert engine.requests[0].max_tokens is None
    assert engine.requests[0].speculation == "auto"
    assert engine.requests[0].cache_salt is None


@pytest.mark.parametrize(
    ("arguments", "param"),
    [
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"extra_body": {"guided_regex": "a"}}, "guided_regex"),
        ({"extra_body": {"speculation": "maybe"}}, "speculation"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages"),
        ({"extra_body": {"messages": ["hello"]}}, "messages"),
        ({"extra_body": {"messages": "hello"}}, "messages"),
        ({"messages": [{"role": "user", "content": [None]}]}, "messages"),
        ({"tools": [None]}, "tools"),
        ({"response_format": "json"}, "response_format"),
        ({"logit_bias": {"the": 1}}, "logit_bias"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"stop": [1, 2]}, "stop"),
        ({"stop": 3}, "stop"),
        ({"logprobs": True, "top_logprobs": "3"}, "top_logprobs"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(door: SyncDoor, arguments: dict[str, Any], param: str) -> None:
    engine = make(door, FakeEngine("x"))
    with pytest.raises(specclient.BadRequestError) as caught:
        door.create(**arguments)
    assert caught.value.param == param
    assert engine.requests == []


@pytest.mark.parametrize(
    ("param", "value", "least", "most"),
    [
        ("temperature", 9, 0, 2),
        ("temperature", -1, 0, 2),
        ("temperature", 2.0001, 0, 2),
        ("temperature", float("nan"), 0, 2),
        ("temperature", "0.5", 0, 2),
        ("temperature", True, 0, 2),
        ("top_p", 1.1, 0, 1),
        ("top_p", -0.1, 0, 1),
        ("presence_penalty", 2.5, -2, 2),
        ("frequency_penalty", -3, -2, 2),
        ("logit_bias", {"5": 101}, -100, 100),
        ("logit_bias", {"5": float("nan")}, -100, 100),
        ("top_logprobs", 21, 0, 20),
        ("top_logprobs", -1, 0, 20),
    ],
)
def test_what_lies_beyond_the_documented_range_is_refused_with_it(
    door: SyncDoor, param: str, value: Any, least: int, most: int
) -> None:
    engine = make(door, FakeEngine("x"))
    with pytest.raises(
        specclient.BadRequestError, match=rf"^{param} .* from {least} to {most}, not "
    ) as caught:
        door.create(logprobs=True, **{param: value})
    assert (caught.value.param, caught.value.status_code) == (param, 400)
    assert engine.requests == []


@pytest.mark.parametrize(
    ("salt", "what"),
    [("", "an empty one"), (7, "int"), (False, "bool"), (["sesame"], "list"), ({"sesame": 1}, "dict")],
)
def test_what_is_no_salt_is_refused_and_not_shown(door: SyncDoor, salt: Any, what: str) -> None:
    engine = make(door, FakeEngine("x"))
    for create in (door.create, lambda **more: door.run(door.client.completions.create(prompt="a", **more))):
        with pytest.raises(specclient.BadRequestError) as caught:
            create(extra_body={"cache_salt": salt})
        assert str(caught.value).startswith(f"cache_salt is a string that is not empty, not {what}.")
        assert (caught.value.param, caught.value.status_code) == ("cache_salt", 400)
    assert engine.requests == []


@pytest.mark.parametrize(
    "at_the_ends",
    [
        {"temperature": 0, "top_p": 0, "presence_penalty": -2, "frequency_penalty": 2},
        {"temperature": 2, "top_p": 1, "presence_penalty": 2, "frequency_penalty": -2},
        {"logit_bias": {"1": -100, "2": 100}, "logprobs": True, "top_logprobs": 20, "max_tokens": 1, "n": 1},
        {"logprobs": False, "top_logprobs": 0},
    ],
)
def test_the_ends_of_the_documented_ranges_are_within(door: SyncDoor, at_the_ends: dict[str, Any]) -> None:
    engine = make(door, FakeEngine("x"))
    door.create(**at_the_ends)
    assert len(engine.requests) == 1


@pytest.mark.parametrize("wanted", [6, -1, True])
def test_text_completions_have_a_range_of_their_own(door: SyncDoor, wanted: Any) -> None:
    engine = make(door, FakeEngine("x"))
    door.run(door.client.completions.create(prompt="a", logprobs=5))
    with pytest.raises(specclient.BadRequestError, match=r"^logprobs .* from 0 to 5, not ") as caught:
        door.run(door.client.completions.create(prompt="a", logprobs=wanted))
    assert caught.value.param == "logprobs"
    assert len(engine.requests) == 1


def test_likeliest_tokens_without_logprobs_are_not_dropped_silently(door: SyncDoor) -> None:
    make(door, FakeEngine("x"))
    with pytest.raises(specclient.BadRequestError, match="goes with logprobs") as caught:
        door.create(top_logprobs=3)
    assert caught.value.param == "top_logprobs"


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (
            ContextTooLong("the prompt has 9 tokens, the context 8"),
            specclient.BadRequestError,
            "context_length_exceeded",
        ),
        (UnsupportedRequest("no"), specclient.BadRequestError, "unsupported"),
        (NotEnoughMemory("9 GB"), specclient.BadRequestError, "not_enough_memory"),
        (EngineClosed("closed"), specclient.APIConnectionError, None),
    ],
)
def test_the_engines_errors(
    door: SyncDoor, waits: list[float], fault: Exception, kind: Any, code: str | None
) -> None:
    make(door, FakeEngine(fail=fault))
    with pytest.raises(kind, match=str(fault)) as caught:
        door.create()
    assert caught.value.code == code


def test_closing_a_stream_cancels_the_request(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("Hel", hang=True))
    opened = door.open()
    chunks = iter(opened)
    next(chunks)
    assert next(chunks).choices[0].delta.content == "Hel"
    opened.close()
    assert engine.handles[0].cancelled.is_set()
    assert opened.stream.specclient.prediction.outcome == "none"


def test_dropping_a_stream_cancels_the_request(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("Hel", hang=True))
    opened = door.open()
    chunks = iter(opened)
    next(chunks)
    del opened, chunks
    gc.collect()
    if door.kind == "async":
        door.run(_tick())
    assert engine.handles[0].cancelled.wait(5)


async def _tick() -> None:
    import asyncio

    await asyncio.sleep(0.05)


def test_limits_hold_in_process_too(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("Hel", hang=True))
    with pytest.raises(specclient.APITimeoutError) as caught:
        door.read(timeout=specclient.Timeout(content_idle=0.2))
    assert (caught.value.limit, caught.value.partial) == ("content_idle", "Hel")
    assert engine.handles[0].cancelled.is_set()


def test_text_completions(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("lo"))
    answer = door.run(door.client.completions.create(prompt="Hel", prediction="lo"))
    assert answer.choices[0].text == "lo"
    assert answer.object == "text_completion"
    assert engine.requests[0].prompt_ids == list(b"Hel")
    stream = door.run(door.client.completions.create(prompt="Hel", stream=True))
    assert door.next(stream).choices[0].text == "lo"


def test_models(door: SyncDoor) -> None:
    make(door, FakeEngine())
    assert [model.id for model in door.run(door.client.models.list())] == ["tiny"]


def test_text_parts_become_text(door: SyncDoor) -> None:
    engine = make(door, FakeEngine("x"))
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    door.create(messages=[{"role": "user", "content": parts}])
    assert engine.messages[0][0] == [{"role": "user", "content": "ab"}]


def test_one_engine_is_loaded_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    import specclient_engine
    from specclient.core import engines

    loaded: list[Any] = []

    class Loader:
        @staticmethod
        def load(model: str, **options: Any) -> Any:
            loaded.append((model, options))
            engine = FakeEngine("x")
            engine.close = lambda: None  # type: ignore[attr-defined]
            return engine

    monkeypatch.setattr(specclient_engine, "Engine", Loader)
    clients = [specclient.Client(provider="local", model="tiny", dtype="float32") for _ in range(8)]
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda c=c: found.append(
                text_of(list(c.chat.completions.create(messages=MESSAGES, stream=True)))
            )
        )
        for c in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engines.close_all()
    assert found == ["x"] * 8
    assert [model for model, _ in loaded] == ["tiny"]
    assert loaded[0][1]["dtype"] == "float32"


def test_the_call_that_loads_the_engine_says_how_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    import specclient_engine
    from specclient.core import engines

    class Loader:
        @staticmethod
        def load(_model: str, **_options: Any) -> Any:
            engine = FakeEngine("x")
            engine.close = lambda: None  # type: ignore[attr-defined]
            return engine

    monkeypatch.setattr(specclient_engine, "Engine", Loader)
    with specclient.Client(provider="local", model="tiny") as client:
        first, second = (client.chat.completions.create(messages=MESSAGES).specclient for _ in range(2))
    engines.close_all()
    assert first.timing.client.load is not None
    assert first.timing.client.load <= first.timing.sent_at
    assert second.timing.client.load is None
