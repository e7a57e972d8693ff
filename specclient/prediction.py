"""The known text that a caller expects to see again in the answer."""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from specclient.errors import ConfigError
from specclient.textfile import FileImage

# Where tiktoken's own package keeps each vocabulary. It caches a download under the SHA-1 of the address.
_VOCABULARIES = {
    "cl100k_base": "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
    "o200k_base": "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
}


class Encoder(Protocol):
    """Anything that cuts text into tokens: a tiktoken encoding, a model's own tokenizer."""

    def encode(self, text: str, /) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class Prediction:
    """Known text, given as it would stand in the answer. Its repr shows a length, never the text.

    `image` is set by `from_file`: the file's encoding, byte order mark and line endings, which `text`
    (LF, no mark) leaves out because models do not write them.
    """

    text: str
    image: FileImage | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConfigError(f"A prediction's text is a string, not {type(self.text).__name__}.")

    def __repr__(self) -> str:
        return f"Prediction({len(self.text)} characters)"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, encoding: str | None = None) -> Prediction:
        """The text of a file. Raises FileError for a file that is missing, binary, undecodable or empty."""
        image = FileImage.load(path, encoding=encoding)
        return cls(image.text, image)

    @classmethod
    def of(cls, value: PredictionLike | None, request: Mapping[str, Any] | None = None) -> Prediction | None:
        """What a caller may pass as `prediction=`, as a Prediction. An empty text is no prediction.

        Accepted are a string, a Prediction, OpenAI's object `{"type": "content", "content": …}` with a
        string or text parts, and a callable that returns one of these; a callable is called once, with
        `request` if it takes an argument. Raises ConfigError for anything else.
        """
        if callable(value):
            value = _call(value, request)
        if value is None or isinstance(value, Prediction):
            return value if value is not None and value.text else None
        if isinstance(value, Mapping):
            value = _text_of(value)
        if not isinstance(value, str):
            raise ConfigError(
                f"prediction is a string, a Prediction, an object of type content, or a callable that "
                f"returns one of these, not {type(value).__name__}."
            )
        return cls(value) if value else None

    def estimate_tokens(self, encoding: str | Encoder | None = None) -> int | None:
        """Length in tokens, or None where no vocabulary is at hand (nothing is downloaded, nothing guessed).

        `encoding` is a tiktoken name (default `o200k_base`) or a tokenizer with `encode`.
        """
        if encoding is not None and not isinstance(encoding, str):
            return len(encoding.encode(self.text))
        name = encoding or "o200k_base"
        if not _vocabulary_cached(name):
            return None
        import tiktoken

        return len(tiktoken.get_encoding(name).encode_ordinary(self.text))


PredictionLike = str | Mapping[str, Any] | Prediction | Callable[..., Any]
"""What `prediction=` takes: see `Prediction.of`."""


def _call(value: Callable[..., Any], request: Mapping[str, Any] | None) -> Any:
    try:
        takes_request = bool(inspect.signature(value).parameters)
    except ValueError:  # a builtin that hides its signature
        takes_request = False
    result = value(request or {}) if takes_request else value()
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise ConfigError("prediction= takes a plain callable, not an async one: await it and pass the text.")
    if callable(result):
        raise ConfigError("The callable given as prediction= returned another callable.")
    return result


def _text_of(value: Mapping[str, Any]) -> str:
    if value.get("type", "content") != "content" or "content" not in value:
        raise ConfigError('A prediction object has the form {"type": "content", "content": …}.')
    content = value["content"]
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list | tuple):
        raise ConfigError(f"A prediction's content is text or a list of parts, not {type(content).__name__}.")
    texts = [
        part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
        for part in content
    ]
    if not all(isinstance(text, str) for text in texts):
        raise ConfigError('The parts of a prediction have the form {"type": "text", "text": …}.')
    return "".join(texts)  # type: ignore[arg-type]  # every one was just seen to be a string


def _vocabulary_cached(name: str) -> bool:
    if name not in _VOCABULARIES:
        raise ConfigError(
            f"No tiktoken encoding called {name!r}; known are {', '.join(sorted(_VOCABULARIES))}."
        )
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    cache = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    return folder != "" and (cache / hashlib.sha1(_VOCABULARIES[name].encode()).hexdigest()).is_file()
