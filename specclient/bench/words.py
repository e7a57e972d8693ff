"""The figures of a measurement in words: the rows that the terminal and the page both show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specclient.bench.stats import Estimate
from specclient.bench.summary import Group
from specclient.tracing.picture import seconds_text

NOT_REPORTED = "not reported"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both arms: seconds, or what `unit` says. `gain` names the group's ratio, if any."""

    label: str
    name: str
    unit: str = ""
    gain: str = ""

    def told(self, group: Group) -> bool:
        """Whether there is anything to show; what nobody reported is listed elsewhere."""
        return any(getattr(arm, self.name) is not None for arm in (group.without, group.predicted))

    def cells(self, group: Group) -> tuple[str, str, str]:
        """(without, with, gain) as text."""
        arms = (getattr(group.without, self.name), getattr(group.predicted, self.name))
        one, two = (self._text(value) for value in arms)
        return one, two, gain_text(getattr(group, self.gain)) if self.gain else ""

    def _text(self, value: Estimate | None) -> str:
        if value is None:
            return NOT_REPORTED
        return f"{number(value.value)} {self.unit}" if self.unit else seconds_text(value.value)


ROWS = (
    Row("whole call", "total", gain="gain"),
    Row("first content after", "first_content"),
    Row("queue", "queue"),
    Row("prefill", "prefill"),
    Row("  prompt from a cache", "cached", "tokens"),
    Row("decode", "decode"),
    Row("tokens of the answer", "tokens", "tokens"),
    Row("a validated token", "per_token", gain="decode_gain"),
    Row("  of that draft", "draft"),
    Row("  verification", "verify"),
    Row("  overhead", "overhead"),
    Row("throughput", "throughput", "tokens/s"),
    Row("energy a token", "joules_per_token", "J"),
)


def rows(group: Group) -> Iterator[Row]:
    """The figures that somebody reported for one of the arms."""
    return (row for row in ROWS if row.told(group))


def group_title(group: Group) -> str:
    """ "code_edit, 8 clients"."""
    return f"{group.workload}, {group.clients} client{'s' if group.clients > 1 else ''}"


def gain_text(gain: Estimate | None) -> str:
    """ "3.1 x (2.8 to 3.4)"; without an interval where there is none."""
    if gain is None:
        return ""
    if gain.low is None or gain.high is None:
        return f"{number(gain.value)} x"
    return f"{number(gain.value)} x ({number(gain.low)} to {number(gain.high)})"


def speculation_text(group: Group) -> Iterator[tuple[str, str]]:
    """What the prediction did, beside the times."""
    yield "pairs", f"{group.pairs} of {group.cases} cases"
    if group.outcomes:
        yield "prediction", ", ".join(group.outcomes)
    if group.acceptance_rate is not None:
        yield "accepted", f"{group.acceptance_rate:.0%} of the predicted tokens that were tried"
    elif group.draft_acceptance is not None:
        yield "accepted", f"{group.draft_acceptance:.0%} of the tokens that the endpoint drafted"
    if group.acceptance_length is not None:
        yield "acceptance length", f"{number(group.acceptance_length.value)} tokens a pass"
    if group.extra_billed is not None:
        yield "extra billed", f"{number(group.extra_billed.value)} tokens a call"
    if group.identical is not None:
        why = " (the known text was added to one of the prompts)" if group.prompts_differ else ""
        yield "same answer", f"{group.identical:.0%} of the pairs{why}"
    failed = group.without.failed + group.predicted.failed
    if failed:
        yield "failed", f"{failed} calls"


def shared_gaps(groups: Sequence[Group]) -> list[str]:
    """What was measured in none of the groups; with a single group nothing is shared."""
    if len(groups) < 2:
        return []
    return [gap for gap in groups[0].not_measured if all(gap in group.not_measured for group in groups)]


def about_rows(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was measured, where and when."""
    for name in (
        "target",
        "provider",
        "model",
        "base_url",
        "machine",
        "started",
        "seed",
        "repeats",
        "max_tokens",
    ):
        if about.get(name) not in (None, ""):
            yield name, str(about[name])
    if about.get("peak_memory") is not None:
        yield "peak memory of this process", f"{about['peak_memory'] / 1e9:.2f} GB"
    if about.get("device_memory") is not None:
        yield "device memory in use", f"{about['device_memory'] / 1e9:.2f} GB"
    for gap in about.get("not_measured", ()):
        yield "not measured", str(gap)


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"
