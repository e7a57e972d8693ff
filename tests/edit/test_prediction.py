"""Prediction: what is taken, what is refused, and what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from specclient.errors import ConfigError, FileError
from specclient.prediction import Prediction


@pytest.mark.parametrize(
    "value",
    [
        "abc",
        Prediction("abc"),
        {"type": "content", "content": "abc"},
        {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "bc"}]},
        lambda: "abc",
        lambda request: request["known"],
        lambda: {"type": "content", "content": "abc"},
    ],
)
def test_every_form_becomes_the_same_text(value: object) -> None:
    prediction = Prediction.of(value, {"known": "abc"})  # type: ignore[arg-type]
    assert prediction == Prediction("abc")


@pytest.mark.parametrize(
    "value", [None, "", Prediction(""), {"type": "content", "content": ""}, lambda: None]
)
def test_no_text_is_no_prediction(value: object) -> None:
    assert Prediction.of(value) is None  # type: ignore[arg-type]


async def _async_prediction() -> str:
    return "abc"


@pytest.mark.parametrize(
    "value",
    [
        3,
        ["abc"],
        {"type": "file", "content": "x"},
        {"type": "content"},
        {"type": "content", "content": [{"type": "image_url"}]},
        _async_prediction,
        lambda: lambda: "abc",
    ],
)
def test_anything_else_is_refused_before_a_request(value: object) -> None:
    with pytest.raises(ConfigError):
        Prediction.of(value)  # type: ignore[arg-type]


def test_a_callable_is_called_once() -> None:
    calls: list[int] = []

    def known() -> str:
        calls.append(1)
        return "abc"

    Prediction.of(known)
    assert calls == [1]


def test_a_file_is_given_as_models_write_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    prediction = Prediction.from_file(path)
    assert prediction.text == "one\ntwo\n"
    assert prediction.image is not None
    assert prediction.image.bom == b"\xef\xbb\xbf"
    with pytest.raises(FileError, match="does not exist"):
        Prediction.from_file(tmp_path / "no")


def test_the_repr_shows_a_length_and_no_text() -> None:
    assert repr(Prediction("hunter2")) == "Prediction(7 characters)"


def test_tokens_are_counted_or_unknown_but_never_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Words:
        def encode(self, text: str) -> list[int]:
            return [len(word) for word in text.split()]

    assert Prediction("a b c").estimate_tokens(Words()) == 3
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert Prediction("a b c").estimate_tokens() is None
    with pytest.raises(ConfigError, match="No tiktoken encoding"):
        Prediction("a").estimate_tokens("nope")


def test_tokens_are_counted_with_a_vocabulary_at_hand(vocabularies: Path | None) -> None:
    if vocabularies is None:
        pytest.skip("no vocabulary in this environment")
    assert Prediction("hello world").estimate_tokens("cl100k_base") == 2
