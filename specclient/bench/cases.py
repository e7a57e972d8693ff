"""What is run: requests with the text expected in their answers, from a file or built in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specclient.bench.texts import BUILT_IN
from specclient.edit.prompt import messages as edit_messages
from specclient.errors import ConfigError
from specclient.prediction import Prediction
from specclient.textfile import FileImage

_OWN = ("model", "stream", "prediction", "workload", "id")


@dataclass(frozen=True, slots=True)
class Case:
    """One request. `request` has no prediction; `prediction` is what the second arm adds."""

    name: str
    workload: str
    request: Mapping[str, Any] = field(repr=False)
    prediction: str | None = field(repr=False)


def built_in(names: Iterable[str] = tuple(BUILT_IN)) -> list[Case]:
    """The built-in workloads of these names. Raises ConfigError for an unknown one."""
    cases: list[Case] = []
    for name in names:
        if name not in BUILT_IN:
            raise ConfigError(f"No built-in workload is called {name!r}; there are {', '.join(BUILT_IN)}.")
        for number, text in enumerate(BUILT_IN[name], start=1):
            cases.append(Case(f"{name}-{number}", name, _request(text), text["known"]))
    return cases


def _request(text: Mapping[str, Any]) -> dict[str, Any]:
    if "file" in text:
        image = FileImage.from_bytes(text["known"].encode(), name=text["file"])
        return {"messages": edit_messages(image, text["instruction"]), "temperature": 0, "max_tokens": 700}
    return {
        "messages": [dict(message) for message in text["messages"]],
        "temperature": 0,
        "max_tokens": text.get("max_tokens", 200),
    }


def from_jsonl(path: Path) -> list[Case]:
    """Requests from a file, one JSON object a line, in OpenAI's shape.

    `prediction` is the text of the second arm, in any form that the client takes. `workload` (default:
    the file's name) groups lines for the verdict, `id` names one. `model` and `stream` are ours to say.
    Raises ConfigError with the line.
    """
    cases = list(_lines(path))
    if not cases:
        raise ConfigError(f"{path} holds no request.")
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"{path}: the id {twice!r} is there twice.")
    return cases


def _lines(path: Path) -> Iterator[Case]:
    for number, line in enumerate(FileImage.load(path).text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            raise ConfigError(f"{path}, line {number}: not JSON.") from None
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            raise ConfigError(f"{path}, line {number}: a request is an object with a list of messages.")
        try:
            known = Prediction.of(value.get("prediction"))
        except ConfigError as error:
            raise ConfigError(f"{path}, line {number}: {error}") from None
        yield Case(
            name=str(value.get("id", number)),
            workload=str(value.get("workload", path.stem)),
            request={key: field for key, field in value.items() if key not in _OWN},
            prediction=known.text if known is not None else None,
        )
