"""Reading an answer: every endpoint's counters and timings in one vocabulary.

`AnswerReader` is shown the headers and then each JSON object (one body, or every chunk of a stream)
and never raises. What it hands back obeys these rules: a null is "not reported" and erases nothing
that came before; numbers may be strings; a figure that cannot be true (negative, not finite, larger
than what holds it) is refused and noted; arithmetic on reported figures is marked `derived`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Literal

from specclient_providers.endpoint import EndpointFacts, Figure
from specclient_providers.layout import first_choice, gather, layout_of, number
from specclient_providers.reading import Measure, Reading, Usage
from specclient_providers.sanity import (
    MOST_TOKENS,
    TIME_NAMES,
    TOKEN_NAMES,
    Found,
    Notes,
    Source,
    check_counts,
    check_times,
    counted_in_usage,
    derive,
    first_token_from_scheduling,
    impossible,
)

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SERVER_TIMING = re.compile(r"(?:^|,)\s*gfet4t7\s*;[^,]*?\bdur=([0-9.]+)")
"""The front end's entry of Google's header; other entries are of proxies on the way."""

# Where each figure goes: an answer has few of them, and a field that is not filled costs nothing.
_USAGE = {f"{name}_tokens": name for name in ("prompt", "completion", "total", "cached", "reasoning")}
_COUNTS = frozenset(TOKEN_NAMES) - _USAGE.keys()
_TIMES = {name: name for name in TIME_NAMES} | {"ttft": "time_to_first_token", "total": "server_total"}
_SHARES = ("acceptance_rate", "mean_acceptance_length")
NAMES = (*TOKEN_NAMES, *TIME_NAMES, *_SHARES)
_rank = itemgetter(0)


class AnswerReader:
    """Collects the figures of one answer. Not shared between calls."""

    def __init__(self, facts: EndpointFacts) -> None:
        self._facts = facts
        self._layout = layout_of(facts.answer.figures)
        self._found: Found = {}
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
        if not (type(obj) is dict or isinstance(obj, Mapping)):
            return
        self._streamed = self._seen or str(obj.get("object", "")).endswith(".chunk")
        self._seen = True
        if self._streamed and not self._may_hold_figures(obj):
            return
        present: list[tuple[int, Figure, str, Any]] = []
        gather(obj, self._layout.body.below, present)
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
            if key != "choices" or in_choices is None or in_choices.intersection(first_choice(value)):
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
        rules = self._facts.answer
        if rules.ttft_includes_queue is False:
            first_token_from_scheduling(found)
        self._check(found, notes, elapsed)
        if rules.derived:
            reported = len(found)
            for rule in rules.derived:
                derive(rule, found, notes)
            if len(found) > reported:
                self._check(found, notes, elapsed)
        return self._reading(found, notes)

    def _check(self, found: Found, notes: Notes, elapsed: float | None) -> None:
        """Refuse what cannot be true: once before anything is derived from it, and once what is derived."""
        check_counts(found, notes, inside=self._facts.answer.subset)
        check_times(found, notes, elapsed)

    def _take(self, figure: Figure, raw: object, where: str) -> bool:
        if type(raw) is int and figure.unit == "tokens" and 0 <= raw <= MOST_TOKENS:  # nearly every figure
            self._found[figure.name] = (float(raw), "server", where)
            return True
        if figure.unit == "positions":
            return self._take_positions(raw, where)
        value = number(raw)
        wrong = "is not a number" if value is None else impossible(figure, value)
        if wrong:
            key = ("nonsense", figure.name)
            what = f"the endpoint's {figure.name}" if figure.name in NAMES else "it"
            self._notes[key] = f"{where} {wrong}; {what} was not believed."
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
        usage = Usage()
        reading = Reading(usage)
        for name, (value, source, where) in found.items():
            if (field := _USAGE.get(name)) is not None:
                setattr(usage, field, int(value))
            elif name in _COUNTS:
                setattr(reading, name, int(value))
            elif (field := _TIMES.get(name)) is not None:
                setattr(reading, field, Measure(value, source, where))
            elif name in _SHARES:
                setattr(reading, name, value)
        counted = found.get("accepted", found.get("accepted_draft", found.get("acceptance_rate")))
        if counted is not None:
            reading.counts_source = _counts_source(counted[2])
            if reading.acceptance_rate is None:
                reading.acceptance_rate = _rate(reading)
        if reading.time_to_first_token is not None:
            reading.ttft_includes_queue = _starts_at_arrival(self._facts)
        reading.extra_billed = _extra_billed(self._facts, reading.rejected)
        if notes:
            reading.notes = tuple((code, text) for (code, _), text in notes.items())
        return reading


def _starts_at_arrival(facts: EndpointFacts) -> bool | None:
    """Whether a first-token time includes the queue: a sum with the queue does, whatever its parts are."""
    return None if facts.answer.ttft_includes_queue is None else True


def _rate(reading: Reading) -> float | None:
    """Accepted over tried: of the prediction where both are known, else of the server's own drafts."""
    accepted, rejected = reading.accepted, reading.rejected
    if accepted is not None and rejected is not None:
        return accepted / (accepted + rejected) if accepted + rejected else None
    hits, tried = reading.accepted_draft, reading.drafted
    return hits / tried if hits is not None and tried else None


def _counts_source(where: str) -> Literal["provider_usage", "provider_metrics"]:
    return "provider_usage" if counted_in_usage(where) else "provider_metrics"


def _extra_billed(facts: EndpointFacts, rejected: int | None) -> int | None:
    """Rejected tokens where they are charged; 0 where the endpoint says that they are free."""
    if facts.billing.rejected_charged is None:
        return None
    return rejected if facts.billing.rejected_charged else 0
