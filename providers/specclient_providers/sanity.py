"""What cannot be true of an answer's figures, and what follows from them.

Every function takes the figures found so far, removes or adds, and notes what was refused and why. A part
that is larger than the whole refutes both where nothing says which of them is wrong.
"""

from __future__ import annotations

import math
from typing import Literal

from specclient_providers.endpoint import Derive, Figure

Source = Literal["server", "derived"]
Found = dict[str, tuple[float, Source, str]]
"""Name -> value in seconds or tokens, who says so, and where."""
Notes = dict[tuple[str, str], str]

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

_CLOCK_SLACK = 0.05
"""Seconds by which a server's figure may exceed the caller's stopwatch before it is refused."""
_ROUNDING = 0.02
"""Share by which a server's parts may exceed its own whole: they are rounded one by one."""
_LONGEST = 7 * 86_400.0
"""Seconds; more is a point in time and no duration."""
MOST_TOKENS = 1e12


def impossible(figure: Figure, value: float) -> str:
    """Why a single value cannot be true; "" if it can."""
    if not math.isfinite(value):
        return "is not finite"
    if value < 0:
        return "is negative"
    if figure.unit == "tokens":
        if value != int(value):
            return "is not a whole number of tokens"
        return "is more than any answer has" if value > MOST_TOKENS else ""
    return "is above 1" if figure.unit == "ratio" and value > 1 else ""


def derive(rule: Derive, found: Found, notes: Notes) -> None:
    """Add what follows from other figures, unless it was reported."""
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


def first_token_from_scheduling(found: Found) -> None:
    """A time to the first token that starts when the request is scheduled is the prefill: the queue comes
    before it."""
    if "ttft" not in found:
        return
    prefill = found.pop("ttft")
    found.setdefault("prefill", prefill)
    if "queue" in found:
        queue = found["queue"]
        found["ttft"] = (queue[0] + prefill[0], "derived", f"{queue[2]}, {prefill[2]}")


def check_times(found: Found, notes: Notes, elapsed: float | None) -> None:
    """Refuse durations that are none, that do not fit into the call, or into the server's own total."""
    if found.keys().isdisjoint(TIME_NAMES):  # as nearly always
        return
    for name in TIME_NAMES:
        if name not in found:
            continue
        value, _, where = found[name]
        if elapsed is not None and value > elapsed + _CLOCK_SLACK:
            said = f"says {value:.3f} s, the whole call took {elapsed:.3f} s"
        elif value > _LONGEST:
            said = f"says {value:.0f} s, which is no duration"
        else:
            continue
        notes["nonsense", name] = f"{where} {said}; the endpoint's {name} was not believed."
        del found[name]
    total, ttft = found.get("total"), found.get("ttft")
    if total is None:
        return
    if ttft is not None and _exceeds(ttft[0], total[0]):
        notes["nonsense", "ttft"] = (
            f"The endpoint's first token after {ttft[0]:.3f} s does not fit into its total of "
            f"{total[0]:.3f} s; neither was believed."
        )
        del found["ttft"], found["total"]
        return
    phases = sum(found[name][0] for name in ("queue", "prefill", "decode") if name in found)
    if _exceeds(phases, total[0]):
        notes["nonsense", "total"] = (
            f"{total[2]} says {total[0]:.3f} s, the endpoint's phases are {phases:.3f} s; its total was not "
            f"believed."
        )
        del found["total"]


_PARTS = (
    ("accepted_draft", "drafted", True),
    ("accepted", "fw_predicted", True),
    ("cached_tokens", "prompt_tokens", False),
)
"""(part, whole, whether either may be wrong)"""


def check_counts(found: Found, notes: Notes, *, inside: bool) -> None:
    """Refuse counts that are larger than what holds them. `inside` says whether the prediction's counters
    lie inside `completion_tokens`."""
    for part, whole, both in _PARTS:
        if part in found:
            _refuse(found, notes, part, whole, both=both)
    _check_total(found, notes)
    if "reasoning_tokens" in found:
        _check_inside_output(found, notes, ("reasoning_tokens",))
    if inside and ("accepted" in found or "rejected" in found):
        _check_inside_output(found, notes, ("accepted", "rejected"))


def counted_in_usage(where: str) -> bool:
    """Whether a figure comes from `usage`, where the prediction's counters are parts of the output."""
    return "usage" in where.split(".")[:2]


def _exceeds(part: float, whole: float) -> bool:
    return part > whole * (1 + _ROUNDING) + 0.005


def _refuse(found: Found, notes: Notes, part: str, whole: str, *, both: bool = True) -> None:
    """Refuse a part that is larger than its whole; the whole too where either may be wrong."""
    if whole not in found or found[part][0] <= found[whole][0]:
        return
    notes["nonsense", part] = (
        f"{found[part][2]} {int(found[part][0])} is more than {found[whole][2]} {int(found[whole][0])}; "
        f"{'neither' if both else 'it'} was{'' if both else ' not'} believed."
    )
    for name in (part, whole) if both else (part,):
        del found[name]
    if part == "accepted_draft":
        found.pop("acceptance_rate", None)


def _check_total(found: Found, notes: Notes) -> None:
    """A total below what it is the sum of."""
    total = found.get("total_tokens")
    if total is not None and total[0] < (held := _held(found)):
        notes["nonsense", "total_tokens"] = (
            f"{total[2]} {int(total[0])} is less than the {int(held)} tokens that it sums up; it was not "
            f"believed."
        )
        del found["total_tokens"]


_NONE = (0.0, "server", "")


def _held(found: Found) -> float:
    prompt, completion = found.get("prompt_tokens", _NONE), found.get("completion_tokens", _NONE)
    return prompt[0] + completion[0]


def _beside(found: Found) -> float:
    """Tokens that the total has beside prompt and completion: some servers count reasoning, or rejected
    tokens, there."""
    return found["total_tokens"][0] - _held(found) if "total_tokens" in found else 0.0


def _check_inside_output(found: Found, notes: Notes, names: tuple[str, ...]) -> None:
    """Counts that lie inside `completion_tokens`; those that cannot are refused together."""
    counted = [name for name in names if name in found]
    completion = found.get("completion_tokens")
    if completion is None or not counted or not counted_in_usage(found[counted[0]][2]):
        return
    if sum(found[name][0] for name in counted) > completion[0] + _beside(found):
        said = ", ".join(f"{name} {int(found[name][0])}" for name in counted)
        notes["nonsense", counted[0]] = (
            f"The endpoint counts {said} inside {int(completion[0])} completion tokens; not believed."
        )
        for name in counted:
            del found[name]
