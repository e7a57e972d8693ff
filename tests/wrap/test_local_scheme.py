"""`local://` under an official SDK: the engine answers, and no socket is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from specclient.middleware import last_report, predicting, report_of, wrap
from tests.server import ScriptedServer
from tests.wrap.sdks import KINDS, MESSAGES, Sdk, text_of

tiny = pytest.importorskip("tests.wrap.tiny", reason="the embedded engine's libraries are not installed")

pytestmark = pytest.mark.sdk


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with tiny.tiny_engine() as engine:
        yield engine


@pytest.fixture(params=list(KINDS))
def sdk(request: pytest.FixtureRequest, is_async: bool, engine: Any) -> Iterator[Sdk]:
    sdk = Sdk(KINDS[request.param], "local://engine", is_async=is_async)
    wrap(sdk.client, engine=engine)
    yield sdk
    sdk.close()


def test_the_engine_answers(sdk: Sdk) -> None:
    answer = sdk.create(max_tokens=12)
    report = report_of(answer)
    assert report is not None
    assert (report.provider, report.prediction.outcome) == ("local", "none")
    assert report.timing.decode is not None
    assert report.timing.decode.source == "engine"
    assert text_of(answer)


def test_a_stream_gives_the_same_text_and_its_report_comes_last(sdk: Sdk) -> None:
    plain = text_of(sdk.create(max_tokens=12))
    chunks = sdk.stream(max_tokens=12)
    assert text_of(chunks) == plain
    report = report_of(chunks[-1])
    assert report is not None
    assert report.timing.time_to_first_token is not None


@pytest.fixture
def client(engine: Any) -> Iterator[Any]:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    with openai.OpenAI(api_key="k", base_url="local://", max_retries=0) as client:
        yield wrap(client, engine=engine)


def test_a_prediction_is_verified_and_changes_nothing(client: Any) -> None:
    arguments: dict[str, Any] = {"model": "tiny", "messages": MESSAGES, "max_tokens": 40}
    plain = text_of(client.chat.completions.create(**arguments))
    known = {"type": "content", "content": plain}
    predicted = client.chat.completions.create(**arguments, prediction=known)
    assert text_of(predicted) == plain
    report = report_of(predicted)
    assert report is not None
    assert report.prediction.outcome == "local"
    assert report.speculation is not None
    assert report.speculation.forward_passes is not None
    assert report.speculation.forward_passes < predicted.usage.completion_tokens


def test_what_the_engine_cannot_do_is_the_sdks_bad_request(client: Any) -> None:
    import openai

    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=10_000, n=99)
    assert refused.value.code
    with pytest.raises(openai.NotFoundError, match="answers chat completions only"):
        client.embeddings.create(model="tiny", input="x")


def test_a_prompt_is_found_in_the_cache_under_its_own_salt_only(client: Any) -> None:
    import openai

    messages = [{"role": "user", "content": "a prompt of its own, longer than the pieces that are reused"}]

    def ask(**own: Any) -> tuple[str, int]:
        answer = client.chat.completions.create(model="tiny", messages=messages, max_tokens=8, extra_body=own)
        return text_of(answer), answer.usage.prompt_tokens_details.cached_tokens

    salts: list[dict[str, Any]] = [{"cache_salt": "a"}, {"cache_salt": "b"}, {"cache_salt": None}, {}]
    answers = [ask(**own) for own in (*salts, *salts)]
    assert [cached > 0 for _, cached in answers] == [False, False, False, True, True, True, True, True]
    assert len({text for text, _ in answers}) == 1
    with pytest.raises(openai.BadRequestError, match="cache_salt is a string that is not empty"):
        ask(cache_salt="")


def test_leaving_early_stops_the_engine(client: Any, engine: Any) -> None:
    stream = client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True, max_tokens=200)
    with stream:
        next(iter(stream))
    assert text_of(client.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=2))
    assert last_report() is not None


def test_a_prediction_that_the_endpoint_cannot_take_goes_to_the_engine(
    engine: Any, server: ScriptedServer
) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    with openai.OpenAI(api_key="k", base_url=server.url) as client:
        wrap(client, provider="groq", on_unsupported="local", engine=engine)
        with predicting("x") as block:
            answer = client.chat.completions.create(model="llama", messages=MESSAGES, max_tokens=8)
    report = report_of(answer)
    assert report is not None
    assert block.reports == [report]
    assert (report.provider, report.prediction.outcome) == ("local", "local")
    assert any("Groq" in note.text for note in report.notes)
    assert server.requests == []


def test_many_streams_at_once(engine: Any) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(api_key="k", base_url="local://") as client:
            wrap(client, engine=engine)

            async def one() -> str:
                stream = await client.chat.completions.create(
                    model="tiny", messages=MESSAGES, stream=True, max_tokens=10
                )
                return text_of([chunk async for chunk in stream])

            return list(await asyncio.gather(*(one() for _ in range(8))))

    assert len(set(asyncio.run(main()))) == 1
