"""A call's waterfall in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from specclient.report import Report
from specclient.tracing.picture import Bar, Picture, of_report, seconds_text

STYLES = {"server": "cyan", "engine": "green", "derived": "yellow", "client": "bright_blue"}
EIGHTHS = " ▏▎▍▌▋▊▉"
MIN_TRACK = 12
_MEASURED_BY = "measured by"
_LABEL = 14
"""Cells that a label needs to be told from the others."""


def waterfall(report: Report) -> Waterfall:
    """The waterfall of one report, to be printed by a rich console."""
    return Waterfall(of_report(report))


class Waterfall:
    """Draws a `Picture`: a row for each bar with its duration, its place on the axis, and who measured it."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        picture = self.picture
        words = _Words(options.ascii_only)
        times = [words(seconds_text(bar.seconds)) for bar in picture.bars]
        columns = _columns(options.max_width, max(map(cell_len, ["time", *times])))
        table = Table(
            box=None, pad_edge=False, expand=True, title=escape(words(picture.title)), title_justify="left"
        )
        table.add_column("", no_wrap=True, overflow="ellipsis", max_width=columns.label, ratio=columns.ratio)
        table.add_column("time", justify="right", no_wrap=True, min_width=columns.time)
        if columns.track:
            axis = words(f"0 → {seconds_text(picture.seconds)}")
            table.add_column(axis, ratio=1, min_width=MIN_TRACK, no_wrap=True)
        if columns.source:
            table.add_column(_MEASURED_BY, no_wrap=True, min_width=len(_MEASURED_BY))
        for bar, time in zip(picture.bars, times, strict=True):
            cells: list[Any] = [_label(bar, words), time]
            if columns.track:
                cells.append(_Track(bar, picture.seconds, "gray50" if bar.kind == "call" else _style(bar)))
            if columns.source:
                cells.append(_measured(bar))
            table.add_row(*cells)
        yield table
        if picture.facts:
            yield ""
            yield _facts(picture, words)
        if picture.remarks:
            remarks = Table.grid(padding=(0, 1, 0, 0))
            for remark in picture.remarks:
                remarks.add_row(*(Text(words(text), style="dim") for text in ("•", remark)))
            yield remarks


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns there is room for. A duration without its unit would be another one, so that it is never
    cut; the track goes first, then who measured, and labels are cut in between."""

    label: int
    time: int
    track: bool
    source: bool

    @property
    def ratio(self) -> int | None:
        """Without the track the labels take the room that is left."""
        return None if self.track else 1


def _columns(width: int, time: int) -> _Columns:
    room = width - time - 1
    source = room - len(_MEASURED_BY) - 1 >= _LABEL
    room -= (len(_MEASURED_BY) + 1) * source
    track = source and room - MIN_TRACK - 1 >= _LABEL
    room -= (MIN_TRACK + 1) * track
    return _Columns(max(room, 1), time, track, source)


def _style(bar: Bar) -> str:
    if bar.kind in ("gap", "wait"):
        return "bright_black"
    return STYLES.get(bar.source or "", "magenta")


class _Words:
    """Texts as the terminal can show them: some can show ASCII only."""

    def __init__(self, ascii_only: bool) -> None:
        self.ascii_only = ascii_only

    def __call__(self, text: str) -> str:
        if not self.ascii_only:
            return text
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


_ASCII = str.maketrans({"→": "to", "µ": "u", "•": "-"})


def _label(bar: Bar, words: _Words) -> Text:
    text = Text("  " * bar.depth + words(bar.label))
    if bar.note:
        text.append(f"  {words(bar.note)}", style="dim")
    return text


def _measured(bar: Bar) -> Text:
    return Text(bar.source or "nobody", style=_style(bar))


def _facts(picture: Picture, words: _Words) -> Table:
    grid = Table.grid("", Column(overflow="fold"), padding=(0, 2))
    for name, value in picture.facts:
        grid.add_row(Text(words(name), style="dim"), Text(words(value)))
    return grid


class _Track:
    """One bar on an axis as wide as the column; every bar shows at least a sliver."""

    def __init__(self, bar: Bar, total: float, style: str) -> None:
        self.bar = bar
        self.total = total
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        width = max(options.max_width, 1)
        text = track_text(self.bar, self.total, width, ascii_only=options.ascii_only)
        yield Segment(text + " " * (width - cell_len(text)), Style.parse(self.style))


def track_text(bar: Bar, total: float, width: int, *, ascii_only: bool = False) -> str:
    """The bar as `width` cells at most: blocks in steps of an eighth, `░` for time that nobody claims."""
    if total <= 0:
        return ""
    first = min(max(bar.start / total, 0.0), 1.0) * width
    last = min(max((bar.start + bar.seconds) / total, 0.0), 1.0) * width
    lead = min(int(first), width - 1)
    if ascii_only or bar.kind in ("gap", "wait"):
        fill = {"gap": "." if ascii_only else "░", "wait": "~" if ascii_only else "┄"}.get(bar.kind, "=")
        return " " * lead + fill * max(round(last) - lead, 1)
    cells = last - lead if bar.seconds > 0 else 0.0
    whole, rest = int(cells), int((cells - int(cells)) * 8)
    body = "█" * whole + (EIGHTHS[rest] if rest else "")
    return " " * lead + (body or "▏")
