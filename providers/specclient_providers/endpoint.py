"""The nouns of this package: what an endpoint documents, who says so, and since when.

A module of `endpoints/` holds one `Endpoint`: rules, each with the condition under which it holds.
`resolve()` applies the conditions for one model, API kind, api-version and day and returns
`EndpointFacts`: the same facts with nothing left to decide. Everything here is frozen data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

State = Literal["documented", "undocumented", "ignored", "rejected", "unknown"]
Certainty = Literal["verified", "secondary", "recalled", "disputed", "user"]
Shape = Literal["object", "parts", "string", "token_ids", "tags"]
"""How a prediction is written: `{"type": "content", "content": "…"}`; the same with a list of text
parts; a bare string; token ids; or tags around the known text inside the prompt."""

NEAR = timedelta(days=90)
"""An end date closer than this is pointed out."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement about an endpoint, and the ground it stands on.

    `source` is an https address, or for facts read from an official SDK its distribution, version
    and file. `certainty` says how the source was used: `verified` it was read and says so,
    `secondary` a third party says so, `recalled` it was not checked again, `disputed` sources differ
    (the note says how), `user` the configuration says so.
    """

    state: State
    source: str | None = None
    checked: date | None = None
    since: date | None = None
    until: date | None = None
    certainty: Certainty = "verified"
    note: str = ""

    def expired(self, on: date) -> bool:
        """True when the day `until` has come: that is the first day without the feature."""
        return self.until is not None and on >= self.until

    def ends_soon(self, on: date) -> bool:
        return self.until is not None and not self.expired(on) and self.until - on <= NEAR

    def holds(self, on: date) -> bool:
        """True when the claim is documented support on that day."""
        return self.state == "documented" and not self.expired(on) and not (self.since and on < self.since)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A request parameter that the endpoint documents as impossible beside a prediction.

    `parameter` names a test of the planner ("tools", "n>1", "logprobs", …). `remedy` is "withhold"
    (the prediction gives way; the caller's parameters never do) or "rename:KEY" (the parameter is
    sent under another name that means the same).
    """

    parameter: str
    remedy: str = "withhold"
    source: str | None = None


@dataclass(frozen=True, slots=True)
class PredictionRule:
    """What holds for `prediction` where all conditions are met; the first such rule wins.

    `models` are shell patterns on the lower-cased model name. `api_version_from` compares the date
    that begins an api-version. `length_default` is the output cap that the endpoint applies when none
    is given, where it also bounds the prediction.
    """

    claim: Claim
    apis: tuple[str, ...] = ("chat",)
    models: tuple[str, ...] = ("*",)
    api_version_from: str | None = None
    shapes: tuple[Shape, ...] = ("object", "parts")
    conflicts: tuple[Conflict, ...] = ()
    length_default: int | None = None
    preview: bool = False
    forced: Mapping[str, object] = field(default_factory=dict)
    """Dotted body key -> value that has to go with a prediction."""


@dataclass(frozen=True, slots=True)
class LengthRule:
    """Under which name the output cap is sent. `only` means that the other name is refused."""

    key: Literal["max_tokens", "max_completion_tokens"]
    models: tuple[str, ...] = ("*",)
    only: bool = False
    source: str | None = None


@dataclass(frozen=True, slots=True)
class OptIn:
    """A documented request field or header that makes the endpoint report usage or timings.

    `field` is a dotted body key, or "header:NAME". A list value is appended to the caller's list.
    `when` limits it to streams or to plain answers; `traces` are the dotted answer keys that appear
    because of it, and that a caller who did not ask does not see.
    """

    code: str
    field: str
    value: object
    traces: tuple[str, ...]
    source: str
    checked: date
    when: Literal["always", "stream", "plain"] = "always"
    apis: tuple[str, ...] = ("chat", "completions")
    api_version_from: str | None = None


@dataclass(frozen=True, slots=True)
class Caution:
    """A parameter that the endpoint refuses or misreads under a condition: told, never dropped."""

    parameter: str
    text: str
    source: str | None = None
    when_speculating: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """Where an answer holds one figure, and in what unit.

    `name` is a word of `answers.NAMES`, or a private one that only a `Derive` reads. `paths` are
    dotted keys of a body or chunk, or "header:NAME"; the first that holds a usable value wins. In a list
    a number is an index, "only" its item if it has one, "*" the sums over its items.
    """

    name: str
    paths: tuple[str, ...]
    unit: Literal["s", "ms", "us", "ns", "tokens", "ratio", "count", "positions"]
    source: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Derive:
    """A figure that follows from others: the sum of `plus` (all needed) and `optional` minus `minus`."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """How to read an answer: figures, derivations, and what the first-token time starts at."""

    figures: tuple[Figure, ...] = ()
    derived: tuple[Derive, ...] = ()
    ttft_includes_queue: bool | None = None
    counters: Claim = Claim("undocumented")
    timings: Claim = Claim("undocumented")
    subset: bool = True
    """Whether the prediction's counters lie inside `completion_tokens`."""


@dataclass(frozen=True, slots=True)
class SpeculationRule:
    """Speculative decoding at the endpoint's own initiative, and what a request can do about it.

    `method` is the one in force where it is known (configured or detected). `prompt_methods` draft
    from the request's own prompt, so known text there becomes a draft. `corpus_methods` draft from
    text loaded at run time.
    """

    claim: Claim = Claim("undocumented")
    methods: tuple[str, ...] = ()
    method: str | None = None
    prompt_methods: tuple[str, ...] = ()
    corpus_methods: tuple[str, ...] = ()
    per_request: str = ""
    """The request field that controls speculation, in words; empty: there is none."""
    switch_on: str = ""
    """What to start the server with, so that it drafts from the prompt."""


@dataclass(frozen=True, slots=True)
class Billing:
    """Whether predicted tokens that were not used are charged as output. None: not documented."""

    rejected_charged: bool | None = None
    source: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Auth:
    """How a key is sent. `value(key)` is the header's value."""

    header: str = "Authorization"
    prefix: str = "Bearer "

    def value(self, key: str) -> str:
        return self.prefix + key


REASONING_KEYS = ("reasoning", "reasoning_content", "reasoning_details", "thinking")
"""The names under which servers put a model's reasoning into a message."""


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """What becomes of reasoning in the assistant's earlier messages.

    With the claim `rejected`, the names of `REASONING_KEYS` other than those in `takes` fail the request,
    so they are taken out. `thinking_parts`: content may be a list with parts of type "thinking", as in the
    endpoint's own answers.
    """

    claim: Claim = Claim("unknown")
    takes: tuple[str, ...] = ()
    thinking_parts: bool = False


@dataclass(frozen=True, slots=True)
class RequestId:
    """The request header in which a server takes the name that it then gives the request in its own logs
    and spans."""

    header: str
    source: str
    checked: date


@dataclass(frozen=True, slots=True)
class RequestRule:
    """What the endpoint does with fields it does not know, and what may be switched on."""

    unknown_fields: Claim = Claim("unknown")
    """state `ignored` or `rejected`, else unknown."""
    opt_ins: tuple[OptIn, ...] = ()
    length: tuple[LengthRule, ...] = ()
    cautions: tuple[Caution, ...] = ()
    history: HistoryRule = HistoryRule()
    request_id: RequestId | None = None


OPENAI_PATHS: Mapping[str, str] = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "responses": "/responses",
    "models": "/models",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Everything that is known about one hosted API or server: the content of one module."""

    name: str
    title: str
    base_url: str | None
    key_env: tuple[str, ...] = ()
    telemetry_name: str = ""
    self_hosted: bool = False
    speaks_openai: bool = True
    """False: the wire format is another one; the facts are kept for information only."""
    auth: Auth = Auth()
    paths: Mapping[str, str] = field(default_factory=lambda: OPENAI_PATHS)
    api_prefix: str = "/v1"
    """Added to a base URL that has no path."""
    prediction: tuple[PredictionRule, ...] = ()
    no_prediction: Claim = Claim("undocumented")
    """What is known where no rule of `prediction` matches."""
    request: RequestRule = RequestRule()
    answer: AnswerRule = AnswerRule()
    speculation: SpeculationRule = SpeculationRule()
    billing: Billing = Billing()
    restrictions: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Shell patterns for hosts of this endpoint besides that of `base_url` (resources, regions)."""
    versioned: bool = False
    """True where deployments have names of their own and the route depends on the api-version."""


@dataclass(frozen=True, slots=True)
class PredictionFacts:
    """`prediction` at one endpoint, for one model, API kind, api-version and day."""

    claim: Claim
    on: date
    code: str
    """Why it is not supported ("model", "api", "api_version", "expired", or the state); "" if it is."""
    shapes: tuple[Shape, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    length_default: int | None = None
    preview: bool = False
    forced: Mapping[str, object] = field(default_factory=dict)
    of_model: bool = False
    """The claim is of some models, this one among them, and not of the endpoint."""

    @property
    def state(self) -> State:
        return self.claim.state

    @property
    def supported(self) -> bool:
        return not self.code

    @property
    def expired(self) -> bool:
        return self.claim.expired(self.on)

    @property
    def ends_soon(self) -> bool:
        return self.claim.ends_soon(self.on)

    @property
    def since(self) -> date | None:
        return self.claim.since

    @property
    def until(self) -> date | None:
        return self.claim.until


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """How a body is written for one model."""

    unknown_fields: Claim
    opt_ins: tuple[OptIn, ...]
    length: LengthRule | None
    cautions: tuple[Caution, ...]
    history: HistoryRule
    request_id: RequestId | None = None


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """The facts about one endpoint for one model, API kind, api-version and day."""

    provider: str
    title: str
    model: str | None
    api: str
    api_version: str | None
    on: date
    base_url: str | None = field(repr=False)
    """May hold credentials, so the repr leaves it out."""
    path: str | None
    """Relative to `base_url`; None: the endpoint has no such API, or speaks another wire format."""
    query: Mapping[str, str] = field(repr=False)
    """What every request carries in its address, which may be a key."""
    key_env: tuple[str, ...]
    auth: Auth
    telemetry_name: str
    self_hosted: bool
    speaks_openai: bool
    prediction: PredictionFacts
    request: RequestFacts
    answer: AnswerRule
    speculation: SpeculationRule
    billing: Billing
    restrictions: tuple[str, ...]
    paths: Mapping[str, str]
    """Every API kind's path, for calls that need no plan (model lists)."""
    rules: tuple[PredictionRule, ...]
    """All rules of the endpoint, for showing which other models take a prediction."""

    @property
    def in_process(self) -> bool:
        return self.provider == "local"

    @property
    def url(self) -> str:
        """The address that requests go to, without credentials: the endpoint's name for people and in the
        memory of refusals."""
        return _url(self.provider, self.base_url, self.path or "")


@lru_cache(maxsize=512)
def _url(provider: str, base_url: str | None, path: str) -> str:
    if base_url is None:
        return f"{provider}:{path}"
    parts = urlsplit(base_url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}{path}"
