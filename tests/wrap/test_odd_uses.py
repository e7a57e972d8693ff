"""What applications do with a client beside calling it goes as with the bare SDK."""

from __future__ import annotations

import copy
import io
import json
import os
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from specclient.middleware import report_of, unwrap, wrap
from tests import server as scripted
from tests.server import Answer, Request, ScriptedServer
from tests.wrap.sdks import MESSAGES

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

ARGUMENTS: dict[str, Any] = {"model": "gpt-4o", "messages": MESSAGES}
KNOWN = {"type": "content", "content": "def bar(): pass"}
TAKES = {"prediction": {"state": "documented", "until": "2099-12-31", "models": ["*"]}}
HELLO = scripted.sse(scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish())

Use = Callable[[Any, ScriptedServer], Any]


def always(answer: Answer) -> Callable[[Request], Answer]:
    return lambda _: answer


def make(server: ScriptedServer, kind: Any = openai.OpenAI, **options: Any) -> Any:
    return kind(api_key="k", base_url=server.url, max_retries=0, **options)


def both(use: Use, answer: Answer, kind: Any = openai.OpenAI) -> tuple[Any, Any]:
    """What a use comes to with a bare client, and with a wrapped one: its value or its error."""
    seen = []
    for wrapped in (False, True):
        with ScriptedServer(respond=always(answer)) as server, make(server, kind) as client:
            if wrapped:
                wrap(client, provider="openai", overrides=TAKES)
            try:
                seen.append(use(client, server))
            except Exception as error:
                seen.append((type(error), str(error)))
    return seen[0], seen[1]


def upload(client: Any, server: ScriptedServer) -> Any:
    made = client.files.create(file=("a.jsonl", io.BytesIO(b'{"x":1}')), purpose="batch")
    body = server.requests[0].body
    return made, body.replace(body.partition(b"\r\n")[0], b"")


def speak(client: Any, _: ScriptedServer) -> bytes:
    made = client.audio.speech.with_streaming_response
    with made.create(model="tts-1", voice="alloy", input="x") as response:
        return bytes(response.read())


def respond(client: Any, server: ScriptedServer) -> Any:
    stream = client.responses.create(model="gpt-4o", input="x", stream=True)
    return [event.type for event in stream], server.requests[0].body


def own_path(client: Any, server: ScriptedServer) -> Any:
    answer = client.post("/elsewhere", body={"prediction": 1}, cast_to=object)
    return answer, server.requests[0].body


RESPONSE_EVENT = b'event: response.completed\ndata: {"type":"response.output_text.done","text":"Hi"}\n\n'
FILE = {
    "id": "f",
    "object": "file",
    "bytes": 1,
    "created_at": 1,
    "filename": "a",
    "purpose": "batch",
    "status": "processed",
}
BATCH = {
    "id": "b",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "input_file_id": "f",
    "completion_window": "24h",
    "status": "validating",
    "created_at": 1,
}
EMBEDDING = {"object": "embedding", "index": 0, "embedding": "AACAPw=="}
USAGE = {"prompt_tokens": 1, "total_tokens": 1}

BESIDE: dict[str, tuple[Use, Answer]] = {
    "a file": (upload, scripted.reply(FILE)),
    "a recording": (
        lambda client, _: client.audio.transcriptions.create(file=("a.wav", b"RIFF"), model="whisper-1"),
        scripted.reply({"text": "Hi"}),
    ),
    "speech": (
        speak,
        scripted.raw(scripted.head(200, {"content-type": "audio/mpeg", "content-length": "3"}), b"\xff\0\1"),
    ),
    "a picture": (
        lambda client, _: client.images.edit(image=("a.png", b"PNG"), prompt="x"),
        scripted.reply({"created": 1, "data": [{"b64_json": "AA"}]}),
    ),
    "an embedding": (
        lambda client, _: client.embeddings.create(model="e", input="x"),
        scripted.reply({"object": "list", "model": "e", "data": [EMBEDDING], "usage": USAGE}),
    ),
    "a batch": (
        lambda client, _: client.batches.create(
            input_file_id="f", endpoint="/v1/chat/completions", completion_window="24h"
        ),
        scripted.reply(BATCH),
    ),
    "stored completions": (
        lambda client, _: list(client.chat.completions.list()),
        scripted.reply({"object": "list", "data": [scripted.completion()], "has_more": False}),
    ),
    "a stored completion's tags": (
        lambda client, server: (
            client.chat.completions.update("c", metadata={"a": "b"}),
            server.requests[0].body,
        ),
        scripted.reply(scripted.completion()),
    ),
    "a streamed response": (respond, scripted.stream(RESPONSE_EVENT)),
    "a beta resource": (
        lambda client, _: client.beta.threads.delete("t"),
        scripted.reply({"id": "t", "object": "thread.deleted", "deleted": True}),
    ),
    "a path of one's own": (own_path, scripted.reply({"x": 1})),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # OpenAI's own, of its beta
@pytest.mark.parametrize(("use", "answer"), BESIDE.values(), ids=BESIDE)
def test_all_else_passes(use: Use, answer: Answer) -> None:
    bare, wrapped = both(use, answer)
    assert wrapped == bare
    assert "Error" not in str(bare)


def closed(client: Any, _: ScriptedServer) -> Any:
    client.close()
    return client.chat.completions.create(**ARGUMENTS)


def copied(client: Any, _: ScriptedServer) -> Any:
    answer = copy.copy(client).chat.completions.create(**ARGUMENTS)
    return answer.choices[0].message.content


def copied_deeply(client: Any, _: ScriptedServer) -> Any:
    return copy.deepcopy(client._client._transport)


def with_another_key(client: Any, server: ScriptedServer) -> Any:
    answer = client.copy(api_key="other").chat.completions.create(**ARGUMENTS)
    return answer.choices[0].message.content, server.requests[0].headers["authorization"]


@pytest.mark.parametrize("use", [closed, copied, copied_deeply, with_another_key])
def test_the_client_itself(use: Use) -> None:
    bare, wrapped = both(use, scripted.reply(scripted.completion("Hello")))
    assert wrapped == bare


def test_wrapping_a_closed_client_is_no_fault(server: ScriptedServer) -> None:
    client = make(server)
    client.close()
    assert wrap(client) is client
    with pytest.raises((RuntimeError, openai.APIConnectionError)):  # the second in older versions
        client.chat.completions.create(**ARGUMENTS)


class Own(openai.OpenAI):  # type: ignore[misc, name-defined]
    """A subclass that adds a header to every request, as applications do."""

    def _prepare_request(self, request: Any) -> None:
        request.headers["x-own"] = "1"


def test_a_subclass_keeps_its_hooks(server: ScriptedServer) -> None:
    server.respond = always(scripted.reply(scripted.completion("Hello")))
    with make(server, Own) as client:
        wrap(client, provider="openai", overrides=TAKES)
        answer = client.chat.completions.create(**ARGUMENTS, prediction=KNOWN)
    assert report_of(answer) is not None
    assert server.requests[0].headers["x-own"] == "1"


def test_unwrapping_lets_a_stream_end_as_it_began(server: ScriptedServer) -> None:
    server.play(HELLO, scripted.reply(scripted.completion("Hello")))
    with make(server) as client:
        wrap(client, provider="openai", overrides=TAKES)
        stream = iter(client.chat.completions.create(**ARGUMENTS, stream=True))
        chunks = [next(stream)]
        unwrap(client)
        chunks += stream
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello"
        assert report_of(chunks[-1]) is not None
        assert not hasattr(client.chat.completions.create(**ARGUMENTS), "specclient")
    assert server.connections == 1


def test_a_stream_is_read_on_by_another_thread(server: ScriptedServer) -> None:
    server.play(HELLO)
    with make(server) as client:
        wrap(client, provider="openai", overrides=TAKES)
        stream = iter(client.chat.completions.create(**ARGUMENTS, stream=True))
        chunks = [next(stream)]
        thread = threading.Thread(target=lambda: chunks.extend(stream))
        thread.start()
        thread.join()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello"
    assert report_of(chunks[-1]) is not None


def test_many_threads_share_a_client(server: ScriptedServer) -> None:
    server.respond = lambda request: (
        HELLO if request.json.get("stream") else scripted.reply(scripted.completion("Hello"))
    )
    seen: list[str | None] = []
    with make(server) as client:
        wrap(client, provider="openai", overrides=TAKES)

        def work() -> None:
            answer = client.chat.completions.create(**ARGUMENTS)
            chunks = list(client.chat.completions.create(**ARGUMENTS, stream=True))
            seen.append(answer.choices[0].message.content)
            seen.append("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
            assert report_of(answer) is not None
            assert report_of(chunks[-1]) is not None
            seen.append("reported")

        threads = [threading.Thread(target=work) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seen) == ["Hello"] * 64 + ["reported"] * 32  # type: ignore[type-var]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_client_wrapped_before_a_fork_works_after_it(server: ScriptedServer) -> None:
    server.respond = always(scripted.reply(scripted.completion("Hello")))
    with make(server) as client:
        wrap(client, provider="openai", overrides=TAKES)
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if report_of(client.chat.completions.create(**ARGUMENTS)) is not None else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert report_of(client.chat.completions.create(**ARGUMENTS)) is not None


AZURE: list[dict[str, Any]] = [
    {"api_key": "k", "azure_deployment": "d"},
    {"api_key": "k"},
    {"azure_ad_token_provider": lambda: "token"},
]


@pytest.mark.parametrize("options", AZURE, ids=["deployment", "model", "token"])
def test_azures_client(server: ScriptedServer, options: dict[str, Any]) -> None:
    server.respond = always(scripted.reply(scripted.completion("Hello")))
    seen = []
    for wrapped in (False, True):
        made = openai.AzureOpenAI(
            azure_endpoint=server.origin, api_version="2025-01-01-preview", max_retries=0, **options
        )
        with made as client:
            if wrapped:
                wrap(client, provider="azure", overrides=TAKES)
            for one in (client, client.with_options(timeout=3)):
                answer = one.chat.completions.create(**ARGUMENTS, prediction=KNOWN)
                sent = server.requests[-1]
                seen.append((sent.target, sent.body, sent.headers.get("authorization")))
                assert hasattr(answer, "specclient") == wrapped
                if wrapped:
                    report = report_of(answer)
                    assert report.model == options.get("azure_deployment", "gpt-4o")
                    assert report.prediction.outcome == "forwarded"
    assert seen[:2] == seen[2:]


def test_hooks_that_read_the_answer_see_it_before_the_sdk(server: ScriptedServer) -> None:
    server.respond = always(scripted.reply(scripted.completion("Hello")))
    read: list[bytes] = []
    hooks = {"response": [lambda response: read.append(response.read())]}
    with httpx.Client(event_hooks=hooks) as http, make(server, http_client=http) as client:
        wrap(client, provider="openai", overrides=TAKES)
        answer = client.chat.completions.create(**ARGUMENTS)
    assert report_of(answer) is not None
    assert b"Hello" in read[0]


REFUSED = {"error": {"message": "property 'prediction' is unsupported", "code": 400}}


@pytest.mark.parametrize("family", ["httpx", "httpx2"])
def test_the_transports_that_tests_put_in_place_of_a_network(family: str) -> None:
    """Their bodies are at hand from the start, and a stream is one block."""
    library = pytest.importorskip(family)
    asked: list[Any] = []
    hello = b"".join(map(scripted.data, (scripted.chunk("Hel"), scripted.chunk("lo"), scripted.finish())))

    def answer(request: Any) -> Any:
        asked.append(json.loads(request.content))
        if not asked[-1].get("stream"):
            return library.Response(200, json=scripted.completion("Hello"))
        events = scripted.data(REFUSED) if "prediction" in asked[-1] else hello + scripted.DONE
        return library.Response(200, headers={"content-type": "text/event-stream"}, content=events)

    http = library.Client(transport=library.MockTransport(answer))
    with openai.OpenAI(api_key="k", base_url="https://a.invalid/v1", http_client=http) as client:
        wrap(client, provider="openai_compatible", overrides=TAKES)
        plain = client.chat.completions.create(**ARGUMENTS, prediction=KNOWN)
        chunks = list(client.chat.completions.create(**ARGUMENTS, prediction=KNOWN, stream=True))
    assert plain.choices[0].message.content == "Hello"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello"
    assert ["prediction" in body for body in asked] == [True, True, False]
    outcomes = [report_of(seen).prediction.outcome for seen in (plain, chunks[-1])]  # type: ignore[union-attr]
    assert outcomes == ["forwarded", "withheld"]
