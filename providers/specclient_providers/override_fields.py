"""The tables of a user's corrections, each value checked for what it can be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictInt,
    StringConstraints,
    Tag,
    model_validator,
)

from specclient_providers.endpoint import REASONING_KEYS, Shape, State
from specclient_providers.override_errors import TAG
from specclient_providers.sanity import TIME_NAMES, TOKEN_NAMES

Api = Literal["chat", "completions", "responses"]
PathApi = Literal["chat", "completions", "responses", "models"]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]

_CONFLICTS = (
    *("tools", "n>1", "logprobs", "top_logprobs", "presence_penalty>0", "frequency_penalty>0", "audio"),
    *("modalities", "max_tokens", "max_completion_tokens", "response_format", "stream", "stop", "seed"),
)
UNITS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(TIME_NAMES, ("s", "ms", "us", "ns")),
    **dict.fromkeys(TOKEN_NAMES, ("tokens",)),
    "drafted": ("tokens", "positions"),
    "accepted_draft": ("tokens", "positions"),
    "acceptance_rate": ("ratio",),
    "mean_acceptance_length": ("count",),
}
"""The figures that a user can place, and the units that they may come in."""


def conflict(name: str) -> str:
    """A parameter, or one above a limit; not a misspelling of one that the planner knows."""
    if not re.fullmatch(r"[A-Za-z_][\w.]*(>-?\d+(\.\d+)?)?", name):
        raise ValueError(f'{name!r} is no parameter; write it like "tools" or "n>1"')
    close = difflib.get_close_matches(name, _CONFLICTS, n=1, cutoff=0.8)
    if close and name not in _CONFLICTS:
        raise ValueError(f"{name!r} is no parameter; did you mean {close[0]!r}?")
    return name


def header(name: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise ValueError(f"{name!r} is no name of a header")
    return name


def variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"{name!r} is no name of an environment variable")
    return name


def path_of_api(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} should begin with a slash: it is added to the base URL")
    return path


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PredictionOverride(Strict):
    """Corrects the rule that would apply; what is not given stays as the registry has it."""

    state: State | None = None
    since: date | None = None
    until: date | None = None
    shapes: tuple[Shape, ...] | None = Field(default=None, min_length=1)
    conflicts: tuple[Annotated[Text, AfterValidator(conflict)], ...] | None = None
    length_default: StrictInt | None = Field(default=None, gt=0)
    preview: bool | None = None
    forced: dict[Text, Any] | None = None
    apis: tuple[Api, ...] | None = Field(default=None, min_length=1)
    models: tuple[Text, ...] | None = Field(default=None, min_length=1)
    source: Text | None = None

    @model_validator(mode="after")
    def _in_order(self) -> PredictionOverride:
        if self.since and self.until and self.since >= self.until:
            raise ValueError(f"until {self.until} should be after since {self.since}")
        return self


class SpeculationOverride(Strict):
    """Says how a self-hosted server drafts, which most of them do not tell."""

    method: Text | None = None
    prompt_methods: tuple[Text, ...] | None = None
    corpus_methods: tuple[Text, ...] | None = None
    methods: tuple[Text, ...] | None = None


class FigureOverride(Strict):
    """Where an answer holds a figure; takes precedence over the registry's paths. With `since` both are
    points in time, and the figure is what lies between them."""

    paths: tuple[Text, ...] = Field(min_length=1)
    unit: Literal["s", "ms", "us", "ns", "tokens", "ratio", "count", "positions"]
    since: tuple[Text, ...] = ()


class OptInOverride(Strict):
    """A request field or header of the user's own server that makes it report."""

    code: Text
    field: Text
    value: Any
    traces: tuple[Text, ...] = ()
    when: Literal["always", "stream", "plain"] = "always"


def _is(kind: type, yes: str, no: str) -> Discriminator:
    return Discriminator(lambda value: f"{TAG}{yes}" if isinstance(value, kind) else f"{TAG}{no}")


OptInChoice = Annotated[
    Annotated[Text, Tag(f"{TAG}code")] | Annotated[OptInOverride, Tag(f"{TAG}own")], _is(str, "code", "own")
]
History = Annotated[
    Annotated[bool, Tag(f"{TAG}all")] | Annotated[tuple[Literal[REASONING_KEYS], ...], Tag(f"{TAG}names")],  # type: ignore[valid-type]
    _is(bool, "all", "names"),
]
