"""Requests of every shape through the real proposer: the answer is the plain answer, token for token."""

from __future__ import annotations

from typing import Any

import pytest
from engine_kit import EOS, VOCAB, Answer, Bench, ByteTokenizer, RecordingRunner, assert_same, oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_stopping import Reciter

from specclient_engine import SamplingParams
from specclient_engine.errors import ContextTooLong
from specclient_engine.proposers import build_proposer
from specclient_engine.request_state import MAX_DRAFT

TOKENIZER = ByteTokenizer()
CODE = "def f(a):\r\n    return a\r\n"
ODD_TEXTS = [
    *("", " ", "\n", "\r\n\r\n", "x", "\x00", "\ufeffabc", "e\u0301\u200d🧑‍🚀", "\ufffd"),
    *("héllo 🎉 中文\n", CODE * 5, CODE.replace("\r", "") * 5, "abc" * 2000),
]
SAMPLINGS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.0, 0.5, 1.5]),
    top_p=st.sampled_from([1.0, 0.9]),
    top_k=st.sampled_from([0, 0, 3]),
    presence_penalty=st.sampled_from([0.0, 0.0, 1.5, -1.0]),
    frequency_penalty=st.sampled_from([0.0, 0.7]),
    repetition_penalty=st.sampled_from([1.0, 1.2]),
    # The end of the text among the likely tokens, and two tokens that nearly tie.
    logit_bias=st.sampled_from([{}, {EOS: 8.0}, {97: 5.0, 98: 4.9}]),
    seed=st.integers(0, 2**64 - 1),
    logprobs=st.sampled_from([None, 0, 2]),
)
PROMPTS = st.one_of(
    st.sampled_from([1, 15, 16, 17, 100, 200, 254, 255]).flatmap(
        lambda size: st.lists(st.integers(0, VOCAB - 1), min_size=size, max_size=size)
    ),
    st.integers(1, 9).map(lambda times: list((CODE * times).encode())),
)
LIMITS = st.sampled_from([None, 1, 2, 30, MAX_DRAFT + 1, MAX_DRAFT + 2, 1000])
fuzz = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@pytest.fixture
def drafting(bench: Bench) -> Bench:
    bench.proposer = lambda state: build_proposer(state.prompt, state.request.predictions, TOKENIZER)
    return bench


def changed(data: st.DataObject, text: str) -> str:
    """`text` after a few edits, or something else altogether."""
    kind = data.draw(st.sampled_from(["same", "edited", "other", "windows", "many times"]))
    if kind == "other":
        return data.draw(st.sampled_from(ODD_TEXTS))
    if kind == "windows":
        return text.replace("\n", "\r\n")
    if kind == "many times":
        return text * 20
    if kind == "edited" and text:
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(text)))
            gone = data.draw(st.integers(0, 3))
            text = text[:at] + data.draw(st.sampled_from(["", "?", "é🎉", "\n  "])) + text[at + gone :]
    return text


def same(answer: Answer, plain: Answer) -> None:
    assert_same(answer, plain)
    assert answer.stats.speculation_inactive in (None, "nothing known matched what the model wrote")
    assert [len(others) for _, others in answer.logprobs] == [len(others) for _, others in plain.logprobs]


@fuzz
@given(data=st.data(), prompt=PROMPTS, sampling=SAMPLINGS, limit=LIMITS, ignore_eos=st.booleans())
def test_any_request_gives_the_plain_answer(
    drafting: Bench,
    data: st.DataObject,
    prompt: list[int],
    sampling: SamplingParams,
    limit: int | None,
    ignore_eos: bool,
) -> None:
    wanted: dict[str, Any] = {"sampling": sampling, "max_tokens": limit, "ignore_eos": ignore_eos}
    plain = drafting.plain(prompt, **wanted)
    known = [changed(data, plain.text) for _ in range(data.draw(st.integers(0, 3)))]
    known.append(data.draw(st.sampled_from([TOKENIZER.decode(prompt), plain.text])))
    same(drafting.ask(prompt, predictions=known, **wanted), plain)
    if plain.text:
        at = data.draw(st.integers(0, len(plain.text) - 1))
        stop = [plain.text[at : at + data.draw(st.integers(1, 6))], "never said"]
        plain = drafting.plain(prompt, stop=stop, **wanted)
        assert stop[0] not in plain.text
        same(drafting.ask(prompt, predictions=known, stop=stop, **wanted), plain)


@pytest.mark.parametrize("size", [256, 257, 5000])
def test_a_prompt_beyond_the_context_is_refused_whatever_is_predicted(
    drafting: Bench, recording: RecordingRunner, size: int
) -> None:
    with pytest.raises(ContextTooLong, match=rf"{size} tokens .* 256"):
        drafting.ask([5] * size, predictions=["abc" * 5000])
    assert recording.passes == []


def test_a_prediction_longer_than_the_context_is_followed_to_its_edge(drafting: Bench) -> None:
    plain = drafting.plain([9], ignore_eos=True)
    assert len(plain.token_ids) == 255
    same(drafting.ask([9], predictions=[plain.text * 100], ignore_eos=True), plain)


class Written:
    """A model that writes these bytes, whatever they are, and a bench over it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.bench = Bench(Reciter(raw, prompt=1))
        self.bench.proposer = lambda state: build_proposer(state.prompt, state.request.predictions, TOKENIZER)

    def check(self, *known: str, stop: tuple[str, ...] = ()) -> Answer:
        wanted: dict[str, Any] = {"max_tokens": len(self.raw), "stop": stop}
        plain = self.bench.plain([7], **wanted)
        answer = self.bench.ask([7], predictions=known, **wanted)
        assert (answer.token_ids, answer.text) == (plain.token_ids, plain.text)
        return answer


@settings(max_examples=60, deadline=None, derandomize=True)
@given(raw=st.binary(min_size=1, max_size=60), stops=st.lists(st.text(max_size=3), max_size=2))
def test_bytes_that_are_no_text_come_through_drafts_unchanged(raw: bytes, stops: list[str]) -> None:
    written = Written(raw)
    text = raw.decode(errors="replace")
    try:
        answer = written.check(text, stop=tuple(stops))
        if not any(stop and stop in text for stop in stops):
            assert answer.text == text
            assert answer.stats.completion_tokens == len(raw)
    finally:
        written.bench.engine.close()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    text=st.text(min_size=2, max_size=15),
    at=st.integers(0, 12),
    length=st.integers(1, 3),
    size=st.integers(1, 9),
)
def test_a_stop_string_straddles_blocks_and_characters(text: str, at: int, length: int, size: int) -> None:
    """Whatever the size of the blocks that are accepted, what comes before the stop string is shown whole."""
    raw = list(text.encode())
    stop = text[at % len(text) :][:length]

    class Blocks:
        def choose(self, requests: Any) -> list[int]:
            return [min(size, len(draft.tokens)) for draft, _ in requests]

    bench = Bench(Reciter(raw, prompt=1), lengths=Blocks())
    bench.use(oracle(raw))
    try:
        answer = bench.ask([7], max_tokens=len(raw), stop=[stop], ignore_eos=True)
    finally:
        bench.engine.close()
    assert answer.text == text[: text.index(stop)]
    assert answer.token_ids == raw[: len((text[: text.index(stop)] + stop).encode())]
    assert answer.stats.finish_reason == "stop"


@pytest.mark.parametrize("known", ["a\nb\nc\n", "a\r\nb\r\nc\r\n", "a\rb\rc\r"])
@pytest.mark.parametrize("written", ["a\r\nb\r\nc\r\n", "a\nb\nc\n"])
def test_line_ends_of_the_answer_are_the_models(known: str, written: str) -> None:
    model = Written((written * 5)[:60].encode())
    assert model.check(known * 5).text == (written * 5)[:60]
    model.bench.engine.close()
