"""A call as bars on a time axis: what the terminal and the HTML page both draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from specclient.report import Economics, Phase, Report, Timing
from specclient.tracing.names import model_name

Kind = Literal["call", "attempt", "wait", "phase", "client", "gap", "other"]

VISIBLE = 0.001
"""Seconds below which preparing a request (or loading a model for it) has no row."""

PHASES = ("queue", "prefill", "decode")
CLIENT_PARTS = ("await_headers", "await_content", "receive")


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: `start` and `seconds` from the picture's origin; `source` is who measured it."""

    label: str
    start: float
    seconds: float
    source: str | None
    kind: Kind
    depth: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A call (or a whole trace): its bars in order, plain facts under it, and what could not be drawn."""

    title: str
    seconds: float
    bars: tuple[Bar, ...]
    facts: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


def of_report(report: Report) -> Picture:
    """The picture of one report.

    Phases that a server, the engine or arithmetic on their figures gave are drawn where the timing put
    them; without any, the parts that the client's stopwatch saw. The time that nobody claims has a row
    of its own.
    """
    timing = report.timing
    total = timing.total.seconds if timing.total is not None else _extent(timing)
    model = model_name(report.model, in_process=report.provider == "local")
    label = f"chat {model}" if model else "chat"
    bars = [Bar(label, 0.0, total, "client", "call")]
    bars += _attempts(report, total)
    bars += _parts(report)
    return Picture(
        title=f"{label} on {report.target}",
        seconds=total,
        bars=tuple(bars),
        facts=tuple(_facts(report)),
        remarks=tuple(_remarks(report)),
    )


def _extent(timing: Timing) -> float:
    begin = timing.phases_at if timing.phases_at is not None else (timing.sent_at or 0.0)
    phases = sum(phase.seconds for _, phase in _reported(timing))
    client = sum(getattr(timing.client, name) or 0.0 for name in CLIENT_PARTS)
    return begin + max(phases, client)


def _reported(timing: Timing) -> list[tuple[str, Phase]]:
    found = ((name, getattr(timing, name)) for name in PHASES)
    return [(name, phase) for name, phase in found if phase is not None]


def _attempts(report: Report, total: float) -> Iterator[Bar]:
    if len(report.attempts) < 2:
        return
    at = 0.0
    several = len({attempt.target for attempt in report.attempts}) > 1
    for number, attempt in enumerate(report.attempts, start=1):
        if attempt.waited:
            yield Bar("back-off", at, attempt.waited, "client", "wait", 1)
            at += attempt.waited
        ending = attempt.error or (f"HTTP {attempt.status}" if attempt.status is not None else "")
        where = attempt.target if several or attempt.target != report.target else ""
        note = ", ".join(part for part in (where, ending) if part)
        seconds = min(attempt.seconds, max(total - at, 0.0))
        yield Bar(f"attempt {number}", at, seconds, "client", "attempt", 1, note)
        at += attempt.seconds


def _parts(report: Report) -> Iterator[Bar]:
    timing = report.timing
    sent = timing.sent_at or 0.0
    connect = timing.client.connect or 0.0
    began = _last_try_began(report)
    if timing.client.load:
        yield Bar("load", began, timing.client.load, "client", "client", 1)
        began += timing.client.load
    if sent - connect - began >= VISIBLE:
        yield Bar("prepare", began, sent - connect - began, "client", "client", 1)
    if connect:
        yield Bar("connect", max(sent - connect, 0.0), connect, "client", "client", 1)
    if timing.phases_at is not None:
        if timing.unattributed and timing.unattributed >= VISIBLE:
            yield Bar("unattributed", sent, timing.unattributed, None, "gap", 1)
        at = timing.phases_at
        for name, phase in _reported(timing):
            yield Bar(name, at, phase.seconds, phase.source, "phase", 1)
            at += phase.seconds
        return
    at = sent
    for name in CLIENT_PARTS:
        seconds = getattr(timing.client, name)
        if seconds:
            yield Bar(name, at, seconds, "client", "client", 1)
            at += seconds


def _last_try_began(report: Report) -> float:
    if len(report.attempts) < 2:
        return 0.0
    *earlier, last = report.attempts
    return sum(attempt.seconds + attempt.waited for attempt in earlier) + last.waited


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    prediction, speculation, timing = report.prediction, report.speculation, report.timing
    if prediction.outcome != "none":
        yield "prediction", f"{prediction.outcome}, {_effect(prediction.effect)}"
    for name in ("accepted", "rejected"):
        count = getattr(prediction, f"{name}_tokens")
        if count is not None:
            yield f"{name} tokens", f"{count} ({prediction.source or 'source unknown'})"
    if prediction.extra_billed_tokens is not None:
        yield "extra billed tokens", str(prediction.extra_billed_tokens)
    if speculation is not None and speculation.mean_acceptance_length is not None:
        yield "acceptance length", f"{speculation.mean_acceptance_length:.2f} tokens a verification step"
    if report.economics is not None:
        yield from _economics(report.economics)
    first = timing.time_to_first_token
    if first is not None:
        yield "time to first token", f"{seconds_text(first.seconds)} ({first.source})"
    if timing.server_total is not None:
        yield "server total", f"{seconds_text(timing.server_total.seconds)} ({timing.server_total.source})"
    if report.request_id:
        yield "request id", report.request_id


def _economics(economics: Economics) -> Iterator[tuple[str, str]]:
    saved = economics.seconds_saved
    if saved is not None:
        between = ""
        if saved.low is not None and saved.high is not None:
            between = f", between {seconds_text(saved.low)} and {seconds_text(saved.high)}"
        # Counters give a bound only: a pass that verifies a draft takes longer than a plain one.
        if economics.baseline == "reported":
            yield "time saved", f"at most {seconds_text(saved.mean)} (by the passes saved)"
        else:
            yield "time saved", f"{seconds_text(saved.mean)}{between} (against {economics.baseline} calls)"
    if economics.money_added is not None:
        yield "money added", f"{economics.money_added:.3g}"


def _effect(effect: str) -> str:
    return {"used": "used", "unused": "not used"}.get(effect, "effect not reported")


def _remarks(report: Report) -> Iterator[str]:
    timing = report.timing
    if timing.consistent is False:
        told = ", ".join(f"{name} {seconds_text(phase.seconds)}" for name, phase in _reported(timing))
        yield f"The reported phases do not fit into the call as the client saw it, so none is drawn: {told}."
    for reason in (*report.prediction.reasons, *report.notes):
        yield str(reason)


def seconds_text(seconds: float) -> str:
    """A duration with three significant digits and the unit that suits it."""
    seconds = seconds or 0.0  # never -0
    if abs(seconds) >= 100:
        return f"{seconds:.0f} s"
    # What would be rounded to 1000 of a unit is 1 of the next.
    if abs(seconds) >= 0.9995:
        return f"{seconds:.3g} s"
    if abs(seconds) >= 0.0009995:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs"
