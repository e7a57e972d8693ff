"""Reading an answer: every endpoint's counters and timings in one vocabulary.

`AnswerReader` is shown the headers and then each JSON object (one body, or every chunk of a stream)
and never raises. What it hands back obeys these rules: a null is "not reported" and erases nothing
that came before; numbers may be strings; a figure that cannot be true (negative, not finite, larger
than what holds it) is refused and noted; arithmetic on reported figures is marked `derived`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal

from specclient_providers.endpoint import Derive, EndpointFacts, Figure

Source = Literal["server", "derived"]

TOKEN_NAMES = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "accepted",
    "rejected",
    "drafted",
    "accepted_draft",
    "forward_passes",
)
TIME_NAMES = ("queue", "prefill", "decode", "ttft", "total")
NAMES = (*TOKEN_NAMES, *TIME_NAMES, "acceptance_rate", "mean_acceptance_length")

_SECONDS = {"s": 1.0, "ms": 1e-3, "ns": 1e-9}
_WHOLE = ("tokens",)
_SERVER_TIMING = re.compile(r"dur=([0-9.]+)")
_CLOCK_SLACK = 0.05
"""Seconds by which a server's figure may exceed the caller's stopwatch before it is refused."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A duration in seconds, whether the server reported it or it was derived, and from where."""

    seconds: float
    source: Source
    field: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a call; None is "not reported". `cached` and `reasoning` are subsets."""

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer's figures. Times are `Measure`s, counts are tokens, None is "not reported".

    `accepted` and `rejected` are of the prediction; `drafted` and `accepted_draft` of the server's own
    speculation from whatever source. `extra_billed` is what was charged beyond the visible output:
    accepted tokens are ordinary output and never counted again.
    """

    usage: Usage = Usage()
    accepted: int | None = None
    rejected: int | None = None
    drafted: int | None = None
    accepted_draft: int | None = None
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    forward_passes: int | None = None
    queue: Measure | None = None
    prefill: Measure | None = None
    decode: Measure | None = None
    time_to_first_token: Measure | None = None
    server_total: Measure | None = None
    ttft_includes_queue: bool | None = None
    counts_source: Literal["provider_usage", "provider_metrics"] | None = None
    extra_billed: int | None = None
    notes: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Node:
    """What may stand at one key of a body: figures, and further keys."""

    leaves: list[tuple[int, Figure, str]] = field(default_factory=list)
    """(rank, figure, its path): of two that are there the lower rank counts."""
    below: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Layout:
    """An endpoint's figures by where they are. `interesting` are the first keys of all paths in bodies."""

    figures: tuple[Figure, ...]
    body: _Node
    header: tuple[tuple[Figure, list[str]], ...]
    interesting: frozenset[str]
    in_choices: frozenset[str] | None
    """Keys of the first choice that hold figures; None when other choices have to be looked at too."""


_layouts: dict[int, _Layout] = {}


def _layout(figures: tuple[Figure, ...]) -> _Layout:
    """The layout of a tuple of figures, made once: it is needed anew for every answer."""
    known = _layouts.get(id(figures))
    if known is not None and known.figures is figures:
        return known
    body, header, rank = _Node(), [], 0
    choices: list[list[str]] = []
    for figure in figures:
        inside = [path for path in figure.paths if not path.startswith("header:")]
        for path in inside:
            node, keys = body, path.split(".")
            for key in keys:
                node = node.below.setdefault(key, _Node())
            node.leaves.append((rank, figure, path))
            rank += 1
            if keys[0] == "choices":
                choices.append(keys)
        outside = [path.removeprefix("header:").lower() for path in figure.paths if path not in inside]
        if outside:
            header.append((figure, outside))
    if len(_layouts) >= 256:
        _layouts.clear()
    in_first = all(len(keys) > 2 and keys[1] == "0" for keys in choices)
    in_choices = frozenset(keys[2] for keys in choices) if in_first else None
    layout = _Layout(figures, body, tuple(header), frozenset(body.below), in_choices)
    _layouts[id(figures)] = layout
    return layout


def _first(choices: object) -> Mapping[str, Any]:
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


class AnswerReader:
    """Collects the figures of one answer. Not shared between calls."""

    def __init__(self, facts: EndpointFacts) -> None:
        self._facts = facts
        self._layout = _layout(facts.answer.figures)
        self._found: dict[str, tuple[float, Source, str]] = {}
        self._notes: dict[tuple[str, str], str] = {}
        self._seen = False
        self._streamed = False

    def fresh(self) -> AnswerReader:
        """An empty reader of the same endpoint; takes a tenth of the time of making one."""
        reader = object.__new__(AnswerReader)
        reader.__dict__.update(self.__dict__, _found={}, _notes={}, _seen=False, _streamed=False)
        return reader

    def headers(self, headers: Mapping[str, str]) -> None:
        """Take the response headers (any case)."""
        if not self._layout.header:
            return
        lowered = {str(name).lower(): value for name, value in headers.items()}
        for figure, names in self._layout.header:
            for name in names:
                raw = lowered.get(name)
                if name == "server-timing" and raw:
                    match = _SERVER_TIMING.search(raw)
                    raw = match.group(1) if match else None
                if raw is not None and self._take(figure, raw, f"header {name}"):
                    break

    def event(self, obj: object) -> None:
        """Take one body, or one chunk of a stream."""
        if not isinstance(obj, Mapping):
            return
        self._streamed = self._seen or str(obj.get("object", "")).endswith(".chunk")
        self._seen = True
        if not self._may_hold_figures(obj):
            return
        present: list[tuple[int, Figure, str, Any]] = []
        _gather(obj, self._layout.body.below, present)
        present.sort(key=_rank)
        taken: set[str] = set()
        for _, figure, path, raw in present:
            if figure.name not in taken and self._take(figure, raw, path):
                taken.add(figure.name)

    def _may_hold_figures(self, obj: Mapping[str, Any]) -> bool:
        """A quick look: most chunks of a stream hold text and nothing else."""
        keys, in_choices = self._layout.interesting, self._layout.in_choices
        for key in keys:
            value = obj.get(key)
            if value is None:
                continue
            if key != "choices" or in_choices is None or in_choices.intersection(_first(value)):
                return True
        return False

    def result(self, elapsed: float | None = None) -> Reading:
        """The figures so far. `elapsed` is the call's length in seconds as the caller saw it, if known:
        a server's time that does not fit into it is refused."""
        found = dict(self._found)
        notes = dict(self._notes)
        if self._streamed:
            for name in ("total", "decode"):
                if name in found and found[name][2].startswith("header "):
                    del found[name]
                    notes["header_precedes_stream", name] = (
                        f"The header's {name} time was left out: headers are sent before a stream ends."
                    )
        for rule in self._facts.answer.derived:
            _derive(rule, found, notes)
        if elapsed is not None:
            _refuse_longer_than(elapsed, found, notes)
        if self._facts.answer.subset:
            _check_subsets(found, notes)
        return self._reading(found, notes)

    def _take(self, figure: Figure, raw: object, where: str) -> bool:
        if figure.unit == "positions":
            return self._take_positions(raw, where)
        value = number(raw)
        wrong = "is not a number" if value is None else _impossible(figure, value)
        if wrong:
            key = ("nonsense", figure.name)
            self._notes[key] = f"{where} {wrong}; the endpoint's {figure.name} was not believed."
            return False
        assert value is not None
        self._found[figure.name] = (value * _SECONDS.get(figure.unit, 1.0), "server", where)
        return True

    def _take_positions(self, raw: object, where: str) -> bool:
        """`pos:hits/total,pos:hits/total,…`: drafts accepted and tried at each position of a draft."""
        pairs = [part.partition(":")[2].partition("/") for part in str(raw).split(",") if part]
        try:
            hits = sum(int(left) for left, _, _ in pairs)
            tried = sum(int(right) for _, _, right in pairs)
        except ValueError:
            hits, tried = 1, 0
        if hits > tried or hits < 0:
            self._notes["nonsense", "positions"] = f"{where} is not a list of hits per position."
            return False
        self._found["accepted_draft"] = (hits, "server", where)
        self._found["drafted"] = (tried, "server", where)
        return True

    def _reading(
        self, found: Mapping[str, tuple[float, Source, str]], notes: Mapping[tuple[str, str], str]
    ) -> Reading:
        count = {name: int(found[name][0]) if name in found else None for name in TOKEN_NAMES}
        time = {name: Measure(*found[name]) if name in found else None for name in TIME_NAMES}
        rate = found["acceptance_rate"][0] if "acceptance_rate" in found else None
        length = found["mean_acceptance_length"][0] if "mean_acceptance_length" in found else None
        where = found.get("accepted", found.get("accepted_draft", found.get("acceptance_rate")))
        return Reading(
            usage=Usage(
                count["prompt_tokens"],
                count["completion_tokens"],
                count["total_tokens"],
                count["cached_tokens"],
                count["reasoning_tokens"],
            ),
            accepted=count["accepted"],
            rejected=count["rejected"],
            drafted=count["drafted"],
            accepted_draft=count["accepted_draft"],
            acceptance_rate=_rate(count) if rate is None else rate,
            mean_acceptance_length=length,
            forward_passes=count["forward_passes"],
            queue=time["queue"],
            prefill=time["prefill"],
            decode=time["decode"],
            time_to_first_token=time["ttft"],
            server_total=time["total"],
            ttft_includes_queue=self._facts.answer.ttft_includes_queue if time["ttft"] else None,
            counts_source=None if where is None else _counts_source(where[2]),
            extra_billed=_extra_billed(self._facts, count["rejected"]),
            notes=tuple((code, text) for (code, _), text in notes.items()),
        )


def _gather(obj: object, nodes: Mapping[str, _Node], present: list[tuple[int, Figure, str, Any]]) -> None:
    """Every figure of `nodes` that `obj` holds and that is not null."""
    if type(obj) is dict or isinstance(obj, Mapping):
        pairs: Iterable[tuple[object, Any]] = obj.items()
    elif isinstance(obj, list):
        pairs = [(key, obj[int(key)]) for key in nodes if key.isdigit() and int(key) < len(obj)]
    else:
        return
    for key, value in pairs:
        if value is None or (node := nodes.get(key)) is None:  # type: ignore[call-overload]
            continue
        for rank, figure, path in node.leaves:
            present.append((rank, figure, path, value))
        if node.below:
            _gather(value, node.below, present)


_rank = itemgetter(0)


def number(raw: object) -> float | None:
    """A finite-or-not number from a JSON number or its string; a bool is none."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        return float(raw)
    except (ValueError, OverflowError):
        return None


def _impossible(figure: Figure, value: float) -> str:
    if not math.isfinite(value):
        return "is not finite"
    if value < 0:
        return "is negative"
    if figure.unit in _WHOLE and value != int(value):
        return "is not a whole number of tokens"
    return "is above 1" if figure.unit == "ratio" and value > 1 else ""


def _derive(
    rule: Derive, found: dict[str, tuple[float, Source, str]], notes: dict[tuple[str, str], str]
) -> None:
    if rule.name in found:
        return
    for name in rule.plus:
        if name not in found:
            return
    for name in rule.minus:
        if name not in found:
            return
    extra = [name for name in rule.optional if name in found]
    value = sum(found[name][0] for name in (*rule.plus, *extra)) - sum(found[name][0] for name in rule.minus)
    if value < 0:
        notes["nonsense", rule.name] = f"The parts of {rule.name} do not add up; it was left out."
        return
    sole = len(rule.plus) == 1 and not extra and not rule.minus
    fields = ", ".join(found[name][2] for name in (*rule.plus, *extra, *rule.minus))
    found[rule.name] = (value, found[rule.plus[0]][1] if sole else "derived", fields)


def _refuse_longer_than(
    elapsed: float, found: dict[str, tuple[float, Source, str]], notes: dict[tuple[str, str], str]
) -> None:
    for name in TIME_NAMES:
        if name in found and found[name][0] > elapsed + _CLOCK_SLACK:
            notes["nonsense", name] = (
                f"{found[name][2]} says {found[name][0]:.3f} s, the whole call took {elapsed:.3f} s; "
                f"the endpoint's {name} was not believed."
            )
            del found[name]


def _check_subsets(found: dict[str, tuple[float, Source, str]], notes: dict[tuple[str, str], str]) -> None:
    """Counters from `usage` lie inside `completion_tokens`; those that cannot are refused together."""
    completion = found.get("completion_tokens")
    counted = [name for name in ("accepted", "rejected") if name in found]
    if completion is None or not counted or _counts_source(found[counted[0]][2]) != "provider_usage":
        return
    if sum(found[name][0] for name in counted) > completion[0]:
        said = ", ".join(f"{name} {int(found[name][0])}" for name in counted)
        notes["nonsense", "accepted"] = (
            f"The endpoint counts {said} inside {int(completion[0])} completion tokens; not believed."
        )
        for name in counted:
            del found[name]


def _rate(count: Mapping[str, int | None]) -> float | None:
    """Accepted over tried: of the prediction where both are known, else of the server's own drafts."""
    accepted, rejected = count["accepted"], count["rejected"]
    if accepted is not None and rejected is not None:
        return accepted / (accepted + rejected) if accepted + rejected else None
    hits, tried = count["accepted_draft"], count["drafted"]
    return hits / tried if hits is not None and tried else None


def _counts_source(where: str) -> Literal["provider_usage", "provider_metrics"]:
    return "provider_usage" if "usage" in where.split(".")[:2] else "provider_metrics"


def _extra_billed(facts: EndpointFacts, rejected: int | None) -> int | None:
    """Rejected tokens where they are charged; 0 where the endpoint says that they are free."""
    if facts.billing.rejected_charged is None:
        return None
    return rejected if facts.billing.rejected_charged else 0
