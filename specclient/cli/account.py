"""What a call did and where its time went, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from specclient.report import Report


def print_account(report: Report, console: Console) -> None:
    """The waterfall of a call with its figures, and how many passes its tokens took."""
    from specclient.tracing.waterfall import waterfall

    console.print(waterfall(report))
    line = passes_line(report)
    if line:
        console.print(line, style="dim", markup=False)


def passes_line(report: Report) -> str | None:
    """ "412 tokens in 61 forward passes", where both are known."""
    passes = report.speculation.forward_passes if report.speculation is not None else None
    tokens = report.usage.completion
    if not passes or tokens is None:
        return None
    done = f"{_counted(tokens, 'token', 'tokens')} in {_counted(passes, 'forward pass', 'forward passes')}"
    return f"{done}, {tokens / passes:.1f} a pass"


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def decode_speed(report: Report) -> tuple[float, str] | None:
    """(tokens per second, who measured it): decoding as reported, else the time of receiving the answer.

    The first token comes out of the prefill, so that one token fewer was decoded.
    """
    tokens = report.usage.completion
    if tokens is None or tokens < 2:
        return None
    if report.timing.decode is not None and report.timing.decode.seconds > 0:
        return (tokens - 1) / report.timing.decode.seconds, report.timing.decode.source
    receive = report.timing.client.receive
    return ((tokens - 1) / receive, "client") if receive else None
