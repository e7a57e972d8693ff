"""Whatever goes wrong below, the SDK sees what it would have seen, and the report says what happened."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from specclient.middleware import exchange, last_report, predicting, wrap
from tests import server as scripted
from tests.server import Close, ScriptedServer, Stall
from tests.wrap.sdks import Sdk

KNOWN = "def bar(): pass"
FACTS = {"prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}
BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}


@pytest.fixture
def client(server: ScriptedServer) -> Any:
    with httpx.Client(base_url=server.url, timeout=5) as client:
        yield wrap(client, provider="openai", overrides=FACTS)


def post(client: httpx.Client, **fields: Any) -> httpx.Response:
    return client.post("/chat/completions", json=BODY | fields)


# Refusals -----------------------------------------------------------------------------------------

REFUSAL = scripted.error(400, "Unrecognized request argument supplied: prediction", param="prediction")


def test_a_refused_prediction_is_taken_out_once_and_remembered(client: Any, server: ScriptedServer) -> None:
    server.play(REFUSAL, scripted.reply(scripted.completion()), scripted.reply(scripted.completion()))
    first = post(client, prediction={"type": "content", "content": KNOWN})
    assert first.status_code == 200
    second = post(client, prediction={"type": "content", "content": KNOWN})
    assert ["prediction" in request.json for request in server.requests] == [True, False, False]
    for answer in (first, second):
        report = answer.json()["specclient"]["prediction"]
        assert report["outcome"] == "withheld"
        assert "400" in report["reasons"][0]["text"]
    assert [attempt["status"] for attempt in first.json()["specclient"]["attempts"]] == [400, 200]


def test_a_refusal_of_something_else_is_the_callers(client: Any, server: ScriptedServer) -> None:
    refusal = scripted.error(400, "max_tokens is too large", param="max_tokens")
    server.play(refusal)
    answer = post(client, prediction={"type": "content", "content": KNOWN})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "max_tokens"
    assert len(server.requests) == 1


def test_a_second_refusal_is_not_retried(client: Any, server: ScriptedServer) -> None:
    server.play(REFUSAL, REFUSAL)
    assert post(client, prediction=KNOWN).status_code == 400
    assert len(server.requests) == 2


def test_policy_error_sends_nothing_and_raises_the_sdks_own_error(server: ScriptedServer) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    with openai.OpenAI(api_key="k", base_url=server.url) as client:
        wrap(client, provider="groq", on_unsupported="error")
        with pytest.raises(openai.BadRequestError, match="cannot go to Groq"):
            client.chat.completions.create(**BODY, prediction={"type": "content", "content": KNOWN})
    assert server.requests == []


def test_what_is_no_prediction_is_the_callers_error(client: Any, server: ScriptedServer) -> None:
    with predicting(lambda: 7):  # type: ignore[arg-type, return-value]
        answer = post(client)
    assert answer.status_code == 400
    assert "prediction" in answer.json()["error"]["message"]
    assert server.requests == []


# Streams ------------------------------------------------------------------------------------------


def test_a_stream_that_ends_too_early_is_told(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.sse(scripted.chunk("Hel"), done=False))
    answer = post(client, stream=True)
    assert b"Hel" in answer.content
    report = last_report()
    assert report is not None
    assert [note.code for note in report.notes if note.code == "incomplete_stream"]


def test_a_broken_stream_breaks_for_the_sdk(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Close(), terminate=False))
    with (
        client.stream("POST", "/chat/completions", json=BODY | {"stream": True}) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        answer.read()
    report = last_report()
    assert report is not None
    assert report.attempts[0].error == "RemoteProtocolError"


def test_an_error_in_the_stream_reaches_the_sdk(server: ScriptedServer, open_sdk: Callable[..., Sdk]) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    sdk = open_sdk("openai")
    wrap(sdk.client, provider="openai")
    server.play(scripted.sse(scripted.chunk("Hel"), {"error": {"message": "overloaded"}}))
    with pytest.raises(openai.APIError, match="overloaded"):
        sdk.stream()
    assert last_report() is not None


def test_the_timeout_of_the_client_holds(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    with pytest.raises(httpx.ReadTimeout):
        client.post("/chat/completions", json=BODY | {"stream": True}, timeout=0.2)


def test_a_server_that_holds_the_socket_after_done_is_not_waited_for(
    client: Any, server: ScriptedServer
) -> None:
    server.play(
        scripted.stream(scripted.data(scripted.finish()), scripted.DONE, Stall(), terminate=False),
        scripted.reply(scripted.completion()),
    )
    with client.stream("POST", "/chat/completions", json=BODY | {"stream": True}, timeout=30) as answer:
        for line in answer.iter_lines():
            if line == "data: [DONE]":
                break
    server.wait_for(lambda seen: seen.open_connections == 0, 5)
    assert post(client).status_code == 200


def test_leaving_early_closes_the_connection(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    with client.stream("POST", "/chat/completions", json=BODY | {"stream": True}) as answer:
        next(answer.iter_lines())
    server.wait_for(lambda seen: seen.open_connections == 0)
    report = last_report()
    assert report is not None
    assert report.timing.client.first_content is not None


def test_a_dropped_stream_is_ended(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))
    request = client.build_request("POST", "/chat/completions", json=BODY | {"stream": True})
    answer = client.send(request, stream=True)
    extensions = answer.extensions
    next(answer.iter_lines())
    answer.close = None
    answer.stream._stream._close()  # the socket, so that nothing is left open behind the test
    del answer, request
    gc.collect()
    assert extensions["specclient"].report.attempts[0].status == 200


def test_cancelling_an_async_stream_leaks_nothing(server: ScriptedServer) -> None:
    server.play(scripted.stream(scripted.data(scripted.chunk("Hel")), Stall()))

    async def main() -> None:
        async with httpx.AsyncClient(base_url=server.url) as client:
            wrap(client, provider="openai")
            arrived = asyncio.Event()

            async def read() -> None:
                request = client.stream("POST", "/chat/completions", json=BODY | {"stream": True})
                async with request as answer:
                    async for _ in answer.aiter_lines():
                        arrived.set()

            task = asyncio.create_task(read())
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    server.wait_for(lambda seen: seen.open_connections == 0)


# Odd answers --------------------------------------------------------------------------------------


def test_a_page_instead_of_an_answer_passes(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.reply(b"<html>busy</html>", 200), scripted.reply(b"<html>busy</html>", 502))
    assert post(client).content == b"<html>busy</html>"
    failed = post(client, prediction=KNOWN)
    assert (failed.status_code, failed.content) == (502, b"<html>busy</html>")


def test_json_for_a_stream_is_read_as_json(client: Any, server: ScriptedServer) -> None:
    server.play(scripted.reply(scripted.completion("Hello")))
    answer = post(client, stream=True)
    assert answer.json()["specclient"]["timing"]["client"]
    assert text_of_json(answer) == "Hello"


def test_every_other_byte_of_a_body_stays(client: Any, server: ScriptedServer) -> None:
    body = b'{ "id": "x",\n  "choices": [],   "usage": null }\n'
    answer = scripted.raw(
        scripted.head(200, {"content-type": "application/json", "content-length": str(len(body))}) + body,
        keep=True,
    )
    server.play(answer)
    content = post(client).content
    assert content.startswith(body[:-2] + b',"specclient":{')
    assert content.endswith(b"}}\n")
    assert json.loads(content).keys() == {"id", "choices", "usage", "specclient"}


def text_of_json(answer: httpx.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def test_what_was_switched_on_is_hidden_from_who_did_not_ask(client: Any, server: ScriptedServer) -> None:
    content = scripted.chunk("Hel") | {"usage": None}
    server.play(
        scripted.sse(content, content, content, scripted.finish() | {"usage": None}, scripted.usage_chunk()),
        scripted.sse(content, content, content, scripted.finish() | {"usage": None}, scripted.usage_chunk()),
    )
    answer = post(client, stream=True)
    assert server.requests[0].json["stream_options"] == {"include_usage": True}
    given, _, _ = answer.content.partition(b'"specclient"')
    assert b'"usage"' not in given
    assert b"total_tokens" not in answer.content
    asked = post(client, stream=True, stream_options={"include_usage": True})
    assert asked.content.count(b'"usage": null') == 4
    assert b'"total_tokens": 7' in asked.content


# Faults of our own --------------------------------------------------------------------------------


def break_open(request: Any, family: Any, settings: Any) -> None:
    raise ZeroDivisionError("a fault in specclient")


def test_a_fault_of_ours_lets_the_request_through_and_is_told(
    client: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exchange, "opened", break_open)
    server.play(scripted.reply(scripted.completion("Hello")))
    answer = post(client)
    assert answer.json() == scripted.completion("Hello")
    assert "a request passed through unwatched: ZeroDivisionError" in caplog.text


def test_strict_makes_a_fault_of_ours_an_error(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exchange, "opened", break_open)
    with httpx.Client(base_url=server.url) as client:
        wrap(client, strict=True)
        answer = post(client)
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.json()["error"]["message"]
    assert server.requests == []


def test_a_fault_while_reading_along_does_not_touch_the_stream(
    client: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("specclient.middleware.account.Answer.event", broken)
    monkeypatch.setattr("specclient.middleware.call.report_on", broken)
    server.play(scripted.sse(scripted.chunk("Hello"), scripted.finish()))
    answer = post(client, stream=True)
    assert b"Hello" in answer.content
    assert answer.content.endswith(scripted.DONE)
    assert "a call ended without a report" in caplog.text


# Threads and tasks --------------------------------------------------------------------------------


def test_threads_do_not_see_each_others_prediction(client: Any, server: ScriptedServer) -> None:
    server.respond = lambda request: scripted.reply(
        scripted.completion(id=request.json["messages"][0]["content"])
    )
    errors: list[BaseException] = []

    def one(number: int) -> None:
        try:
            with predicting(f"text {number}"):
                answer = post(client, messages=[{"role": "user", "content": f"id-{number}"}])
            assert answer.json()["id"] == f"id-{number}"
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    sent = {
        (request.json["messages"][0]["content"].removeprefix("id-"), request.json["prediction"]["content"])
        for request in server.requests
    }
    assert sent == {(str(number), f"text {number}") for number in range(16)}


def test_tasks_inherit_the_prediction_and_hundreds_of_streams_lose_nothing(server: ScriptedServer) -> None:
    words = [scripted.chunk(f"w{number} ") for number in range(20)]
    server.respond = lambda _: scripted.sse(*words, scripted.finish())

    async def main() -> None:
        limits = httpx.Limits(max_connections=32)
        async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=60) as client:
            wrap(client, provider="openai", overrides=FACTS)

            async def one() -> None:
                answer = await client.post("/chat/completions", json=BODY | {"stream": True})
                assert answer.content.count(b'"content"') == 20
                assert answer.content.count(b'"specclient"') == 1

            with predicting(KNOWN):
                await asyncio.gather(*(one() for _ in range(200)))

    asyncio.run(main())
    assert all(request.json["prediction"]["content"] == KNOWN for request in server.requests)


def test_an_inner_block_hides_the_outer(client: Any, server: ScriptedServer) -> None:
    server.respond = lambda _: scripted.reply(scripted.completion())
    with predicting("outer"):
        with predicting(None):
            post(client)
        with predicting("inner"):
            post(client)
        post(client, prediction="own")
    sent = [request.json.get("prediction", {}).get("content") for request in server.requests]
    assert sent == [None, "inner", "own"]


def test_a_block_has_the_reports_of_calls_in_tasks_and_threads_of_others(
    client: Any, server: ScriptedServer
) -> None:
    """Frameworks make calls where `last_report` of the caller's own task does not see them."""
    stream = scripted.sse(scripted.chunk("Hel"), scripted.finish())
    server.respond = lambda request: (
        stream if request.json.get("stream") else scripted.reply(scripted.completion())
    )
    contextvars.copy_context().run(post, client)
    with predicting("known") as block:
        contextvars.copy_context().run(post, client)
        asyncio.run(asyncio.to_thread(post, client, stream=True))
        with predicting(None) as inner:
            post(client)
    post(client)
    assert [report.prediction.outcome for report in block.reports] == ["forwarded", "forwarded"]
    assert [report.prediction.outcome for report in inner.reports] == ["none"]
