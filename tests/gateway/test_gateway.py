"""The server end to end, over real sockets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specclient.config import Config, load_config
from specclient.core.sse import SSEReader
from specclient.errors import ConfigError
from specclient.gateway import create_app
from tests import server as scripted
from tests.gateway.conftest import Running
from tests.server import Close, ScriptedServer, Stall, Until, Wait

KNOWN = "def bar():\n    return 1\n"
FILE = "def foo(x):\n    return x + 1\n" * 6


def objects(stream: bytes) -> list[Any]:
    """The JSON events of a stream."""
    return [json.loads(data) for _, data in SSEReader().feed(stream) if data != b"[DONE]"]


def test_a_plain_answer_with_its_report(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(scripted.reply(scripted.completion("Hello")))
    answer = gateway.post(model="plain", prediction=KNOWN)
    assert answer.json()["choices"][0]["message"]["content"] == "Hello"
    report = answer.json()["specclient"]
    assert (report["target"], report["prediction"]["outcome"]) == ("plain", "withheld")
    sent = upstream.requests[0]
    assert sent.json["model"] == "some-model"
    assert "prediction" not in sent.json
    assert sent.headers["authorization"] == "Bearer sk-upstream"


@pytest.mark.parametrize(
    "prediction",
    [
        KNOWN,
        {"type": "content", "content": KNOWN},
        {"type": "content", "content": [{"type": "text", "text": KNOWN}]},
    ],
)
def test_a_prediction_in_any_shape(gateway: Running, upstream: ScriptedServer, prediction: Any) -> None:
    upstream.play(scripted.reply(scripted.completion("Hello")))
    answer = gateway.post(model="predicting", prediction=prediction)
    assert answer.json()["specclient"]["prediction"]["outcome"] == "forwarded"
    assert KNOWN in str(upstream.requests[0].json["prediction"]).replace("\\n", "\n")


def test_a_stream_with_its_report_in_the_last_chunk(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(
        scripted.sse(scripted.role(), scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish())
    )
    answer = gateway.post(model="predicting", prediction=KNOWN, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.content.endswith(scripted.DONE)
    events = objects(answer.content)
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events) == "Hello"
    assert [index for index, event in enumerate(events) if "specclient" in event] == [len(events) - 1]


def test_nothing_is_buffered(gateway: Running, upstream: ScriptedServer) -> None:
    read = threading.Event()
    upstream.play(scripted.sse(scripted.chunk("Hel"), Until(read), scripted.chunk("lo"), scripted.finish()))
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
        lines = (line for line in answer.iter_lines() if line)
        assert "Hel" in next(lines)  # the target is still waiting for us to say that we have it
        read.set()
        assert "lo" in next(lines)


def test_a_long_prefill_is_bridged_by_comments(
    start: Callable[..., Running], upstream: ScriptedServer
) -> None:
    gateway = start(keep_alive_seconds=0.05)
    release = threading.Event()
    answer = scripted.sse(scripted.chunk("Hello"), scripted.finish())
    upstream.play(scripted.Answer((Until(release), *answer.steps)))  # not even headers until then
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": keep-alive"
        release.set()
        rest = list(lines)
    assert any("Hello" in line for line in rest)
    assert rest[-2] == "data: [DONE]"


def test_an_error_after_a_comment_is_told_in_the_stream(
    start: Callable[..., Running], upstream: ScriptedServer
) -> None:
    gateway = start(keep_alive_seconds=0.05)
    upstream.play(scripted.Answer((Wait(0.4), *scripted.error(500, "broken").steps)))
    answer = gateway.post(model="plain", stream=True)
    assert answer.status_code == 200
    assert objects(answer.content)[-1]["error"]["message"]


def test_a_client_that_leaves_frees_the_target(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
        next(answer.iter_lines())
    upstream.wait_for(lambda seen: seen.open_connections == 0)


def test_a_client_that_leaves_a_plain_request_frees_the_target(
    gateway: Running, upstream: ScriptedServer
) -> None:
    upstream.play(scripted.raw(Stall()))
    with pytest.raises(httpx.ReadTimeout):
        gateway.client.post("/chat/completions", json={"model": "plain", "messages": []}, timeout=0.3)
    upstream.wait_for(lambda seen: bool(seen.requests) and seen.open_connections == 0)


@pytest.mark.parametrize(
    ("played", "status", "kind"),
    [
        (scripted.error(400, "bad", param="temperature"), 400, "error"),
        (scripted.error(429, "slow down", {"retry-after": "7"}), 429, "error"),
        (scripted.error(401, "who are you"), 502, "upstream_error"),
        (scripted.error(503, "busy"), 503, "error"),
        (scripted.raw(Close()), 502, "upstream_error"),
        (scripted.reply(b"<html>"), 502, "upstream_error"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_the_target(
    gateway: Running, upstream: ScriptedServer, played: Any, status: int, kind: str, stream: bool
) -> None:
    upstream.play(played)
    answer = gateway.post(model="plain", stream=stream)
    assert answer.status_code in (status, 200) if stream else answer.status_code == status
    error = (answer.json() if answer.status_code != 200 else objects(answer.content)[-1])["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == kind
    assert "sk-upstream" not in answer.text
    if status == 429:
        assert answer.headers["retry-after"] == "7"


def test_a_stream_that_breaks_is_told_in_the_stream(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Close(), terminate=False))
    answer = gateway.post(model="plain", stream=True)
    events = objects(answer.content)
    assert events[0]["choices"][0]["delta"]["content"] == "Hel"
    assert events[-1]["error"]["type"] == "upstream_error"
    assert not answer.content.endswith(scripted.DONE)


# Names --------------------------------------------------------------------------------------------


def test_targets_are_the_models(gateway: Running) -> None:
    listed = gateway.client.get("/models").json()["data"]
    assert [(model["id"], model["owned_by"]) for model in listed] == [
        ("plain", "openai_compatible"),
        ("predicting", "fireworks"),
    ]
    assert gateway.client.get("/models/plain").json()["id"] == "plain"
    unknown = gateway.client.get("/models/other")
    assert unknown.status_code == 404
    assert unknown.json()["error"]["message"] == (
        "No target is called 'other'. Ask for one of: plain, predicting; or an allowed model of one, "
        "as TARGET/MODEL."
    )


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (None, "some-model"),
        ("plain", "some-model"),
        ("plain/some-model", "some-model"),
        ("some-model", "some-model"),
        ("predicting/accounts/fireworks/models/x", "accounts/fireworks/models/x"),
        ("accounts/fireworks/models/x", "accounts/fireworks/models/x"),
    ],
)
def test_a_model_is_a_target_or_one_of_its_models(
    gateway: Running, upstream: ScriptedServer, asked: str | None, sent: str
) -> None:
    upstream.play(scripted.reply(scripted.completion()))
    assert gateway.post(**({} if asked is None else {"model": asked})).status_code == 200
    assert upstream.requests[0].json["model"] == sent


def test_an_unknown_model_is_refused_with_the_names(gateway: Running, upstream: ScriptedServer) -> None:
    answer = gateway.post(model="gpt-7")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert "plain, predicting" in answer.json()["error"]["message"]
    assert upstream.requests == []


def test_text_completions(gateway: Running, upstream: ScriptedServer) -> None:
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    upstream.play(
        scripted.reply(body | {"choices": [{"index": 0, "text": "Hello", "finish_reason": "stop"}]})
    )
    answer = gateway.client.post("/completions", json={"model": "plain", "prompt": "x"})
    assert answer.json()["choices"][0]["text"] == "Hello"
    assert upstream.requests[0].path == "/v1/completions"


# Inference ----------------------------------------------------------------------------------------


def test_a_quoted_file_is_the_prediction_where_the_target_asks_for_it(
    gateway: Running, upstream: ScriptedServer
) -> None:
    upstream.respond = lambda _: scripted.reply(scripted.completion())
    messages = [{"role": "user", "content": f"Rename foo to bar.\n```python\n{FILE}```\nOnly the file."}]
    answer = gateway.post(model="predicting", messages=messages)
    assert FILE in str(upstream.requests[0].json["prediction"]["content"])
    reasons = answer.json()["specclient"]["prediction"]["reasons"]
    assert reasons[0]["code"] == "inferred"
    own = gateway.post(model="predicting", messages=messages, prediction=KNOWN)
    assert "inferred" not in [reason["code"] for reason in own.json()["specclient"]["prediction"]["reasons"]]
    gateway.post(model="plain", messages=messages)
    assert "prediction" not in upstream.requests[-1].json


# Other peers --------------------------------------------------------------------------------------


@pytest.mark.sdk
def test_the_official_sdk_as_a_client(gateway: Running, upstream: ScriptedServer) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    upstream.play(
        scripted.sse(scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish()),
        scripted.error(429, "slow down"),
    )
    with openai.OpenAI(api_key="none", base_url=gateway.url, max_retries=0) as client:
        chunks = list(client.chat.completions.create(model="plain", messages=[], stream=True))
        assert chunks[-1].specclient["target"] == "plain"
        with pytest.raises(openai.RateLimitError, match="slow down"):
            client.chat.completions.create(model="plain", messages=[])
        assert [model.id for model in client.models.list()] == ["plain", "predicting"]


@pytest.fixture
def local(start: Callable[..., Running], tmp_path: Path) -> Iterator[Running]:
    tiny = pytest.importorskip("tests.wrap.tiny", reason="the embedded engine's libraries are not installed")
    with tiny.tiny_engine() as engine:
        empty = tmp_path / "empty.toml"
        empty.write_text("")
        yield start(config=load_config(empty, env={}), engine=engine)


def test_the_embedded_engine_is_served_without_any_configuration(local: Running) -> None:
    plain = local.post(model="local", max_tokens=20).json()
    text = plain["choices"][0]["message"]["content"]
    predicted = local.post(model="local", max_tokens=20, prediction=text).json()
    assert predicted["choices"][0]["message"]["content"] == text
    assert predicted["specclient"]["prediction"]["outcome"] == "local"
    streamed = objects(local.post(max_tokens=20, stream=True).content)
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in streamed) == text
    refused = local.post(max_tokens=10, n=50)
    assert refused.status_code == 400


@pytest.mark.parametrize("temperature", [9, -1])
def test_the_embedded_engine_refuses_what_lies_beyond_the_documented_range(
    local: Running, temperature: int
) -> None:
    refused = local.post(max_tokens=10, temperature=temperature)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "temperature")
    assert f"from 0 to 2, not {temperature}" in refused.json()["error"]["message"]


def test_a_prompt_is_found_in_the_cache_under_its_own_salt_only(local: Running) -> None:
    def ask(**own: Any) -> tuple[str, int]:
        answer = local.post(max_tokens=8, messages=[{"role": "user", "content": KNOWN * 9}], **own).json()
        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        return answer["choices"][0]["message"]["content"], cached

    answers = [ask(**own) for own in ({}, {"cache_salt": "a"}, {"cache_salt": "b"}, {"cache_salt": "a"}, {})]
    assert [cached > 0 for _, cached in answers] == [False, False, False, True, True]
    assert len({text for text, _ in answers}) == 1


@pytest.mark.parametrize(("salt", "what"), [("", "an empty one"), (["sesame"], "list")])
@pytest.mark.parametrize("stream", [False, True])
def test_the_embedded_engine_refuses_what_is_no_salt(
    local: Running, salt: Any, what: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    refused = local.post(max_tokens=10, cache_salt=salt, stream=stream)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "cache_salt")
    assert f"cache_salt is a string that is not empty, not {what}." in refused.json()["error"]["message"]
    assert "sesame" not in refused.text + caplog.text


def test_a_client_that_leaves_stops_the_engine(
    start: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = pytest.importorskip("tests.wrap.tiny", reason="the embedded engine's libraries are not installed")
    from specclient_engine.handle import Handle

    stopped = threading.Event()
    cancel = Handle.cancel

    def told(self: Handle) -> None:
        stopped.set()
        cancel(self)

    monkeypatch.setattr(Handle, "cancel", told)
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    with tiny.tiny_engine(pause=0.02) as engine:
        gateway = start(config=load_config(empty, env={}), engine=engine)
        body = {"model": "local", "messages": [{"role": "user", "content": "x"}], "stream": True}
        with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
            next(answer.iter_lines())
        assert stopped.wait(10)
        gateway.stop()


def test_many_clients_at_once(gateway: Running, upstream: ScriptedServer) -> None:
    words = [scripted.chunk(f"w{number} ") for number in range(10)]
    upstream.respond = lambda _: scripted.sse(*words, scripted.finish())

    async def main() -> list[int]:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=60) as client:

            async def one() -> int:
                body = {"model": "plain", "messages": [], "stream": True}
                return (await client.post("/chat/completions", json=body)).content.count(b'"content"')

            return list(await asyncio.gather(*(one() for _ in range(40))))

    assert asyncio.run(main()) == [10] * 40


def test_stopping_lets_an_answer_end(start: Callable[..., Running], upstream: ScriptedServer) -> None:
    gateway = start(shutdown_seconds=20)
    release = threading.Event()
    upstream.play(
        scripted.sse(scripted.chunk("Hel"), Until(release), scripted.chunk("lo"), scripted.finish())
    )
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
        gateway.server.should_exit = True
        release.set()
        assert "data: [DONE]" in list(lines)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"config": {}},
            r"^config of create_app\(\) is what specclient\.config\.load_config\(\) returns, not dict",
        ),
        (
            {"settings": {"port": 1}},
            r"^settings of create_app\(\) is a specclient\.gateway\.ServeSettings, not dict",
        ),
    ],
)
def test_a_dict_is_no_configuration(config: Config, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        create_app(**{"config": config, **given})
