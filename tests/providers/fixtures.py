"""Conformance fixtures: requests and answers of each endpoint, written from its documentation.

`fixtures/<provider>.json` has `provider`, `model`, where needed `api_version`, `base_url` and `overrides`,
the sources in `written_from`, and a list of cases:

    name                plain, streamed, refused, …
    request             what the caller sets beside model, messages and prediction
    sent, absent        keys of the wire body that must be there with that value / must not be there
    sent_headers        headers that must be sent, in lower case
    prompt_holds        texts that the last message must contain
    status, headers     of the answer (default 200, none)
    body | sse          the answer: a JSON value, or the name of a file with the raw event stream
    stripped            top-level keys of the answer that the caller must not see, since we asked for them
    swallowed           how many whole chunks the caller must not see
    outcome, effect     of the prediction, in the report
    reading             figures: accepted, rejected, drafted, …, times in seconds; null is "not reported"
    refuses_prediction  whether the (error) answer is a live refusal of the prediction

Any scripted server can play a case: `case.status`, `case.headers` and `case.payload` are the answer as
bytes, `case.request_body()` is what a caller would give to `create()`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_suffix("")
KNOWN = "def total(items):\n    return sum(items)\n"
ANSWER = "def total(values):\n    return sum(values)\n"
INSTRUCTION = "Rename items to values."


@dataclass(frozen=True)
class Case:
    """One request and the answer to it."""

    provider: str
    model: str
    name: str
    request: dict[str, Any]
    payload: bytes
    content_type: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    api_version: str | None = None
    base_url: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    prompt_has_text: bool = False
    sent: dict[str, Any] = field(default_factory=dict)
    sent_headers: dict[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    prompt_holds: tuple[str, ...] = ()
    stripped: tuple[str, ...] = ()
    swallowed: int | None = None
    outcome: str | None = None
    effect: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    refuses_prediction: bool = False

    def __str__(self) -> str:
        return f"{self.provider}-{self.name}"

    @property
    def streamed(self) -> bool:
        return self.content_type == "text/event-stream"

    def request_body(self) -> dict[str, Any]:
        """What a caller asks for, without the prediction (which is KNOWN)."""
        text = f"{INSTRUCTION}\n\n{KNOWN}" if self.prompt_has_text else INSTRUCTION
        return {"model": self.model, "messages": [{"role": "user", "content": text}], **self.request}

    def events(self) -> list[Any]:
        """The answer's JSON objects, in order."""
        if not self.streamed:
            return [json.loads(self.payload)]
        lines = self.payload.decode().splitlines()
        found = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [json.loads(text) for text in found if text != "[DONE]"]


def cases(provider: str | None = None) -> list[Case]:
    """Every case, or those of one provider."""
    return [
        case
        for path in sorted(FOLDER.glob("*.json"))
        for case in _load(path)
        if provider in (None, case.provider)
    ]


def _load(path: Path) -> Iterator[Case]:
    document = json.loads(path.read_text(encoding="utf-8"))
    shared = {
        key: document[key]
        for key in ("provider", "model", "api_version", "base_url", "overrides", "prompt_has_text")
        if key in document
    }
    for entry in document["cases"]:
        given = dict(entry)
        stream = given.pop("sse", None)
        payload = (FOLDER / stream).read_bytes() if stream else json.dumps(given.pop("body")).encode()
        for name in ("absent", "prompt_holds", "stripped"):
            given[name] = tuple(given.get(name, ()))
        content_type = "text/event-stream" if stream else "application/json"
        yield Case(**shared, **given, payload=payload, content_type=content_type)
