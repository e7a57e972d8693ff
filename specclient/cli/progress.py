"""Long work, shown on stderr while it runs: on a terminal, and gone when it is done."""

from __future__ import annotations

import re
from types import TracebackType
from typing import TYPE_CHECKING, Any

from specclient.cli.terminal import draws, note, stderr

if TYPE_CHECKING:
    from rich.console import RenderableType

    from specclient_engine.api import Progress as Stage

_TAIL_LINES = 12
_BAR = 12
_BESIDE_TITLE = _BAR + 30
"""Cells that the bar, the longest amount ("1,117 of 1,117 MB"), the time and the gaps take."""
_DOING = {
    "download": "downloading",
    "verify": "checking",
    "convert": "converting",
    "load": "loading",
    "measure": "measuring",
}
_CACHE_MARK = re.compile(r"-[0-9a-f]{12}-v\d+$")
"""The file's hash and the format's version in the name of a folder of the cache: nothing for people."""


class EngineProgress:
    """Shows how a model is got ready. Where nothing can be drawn, it says one sentence a stage.

    A context manager: the bars are taken away at its end.
    """

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[tuple[str, str], Any] = {}
        self._terminal = draws()
        self._starting: Any = None

    def __enter__(self) -> EngineProgress:
        if self._terminal:
            # Importing torch takes seconds, and no stage can be told before that.
            self._starting = self._begin("starting the engine")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, stage: Stage) -> None:
        # A conversion names each tensor, hundreds of them: for people it is one piece of work.
        label = "the weights" if stage.stage == "convert" else _CACHE_MARK.sub("", stage.label)
        key = (stage.stage, label)
        title = f"{_DOING[stage.stage]} {label}"
        if key not in self._tasks:
            self._tasks[key] = self._begin(title)
        if self._bars is None:
            return
        if self._starting is not None:
            self._bars.remove_task(self._starting)
            self._starting = None
        # One step of unknown length is either to do or done: a bar that moves says more than "0 of 1".
        single = stage.unit == "steps" and stage.total == 1
        total = None if single and not stage.done else stage.total
        amount = "" if single else _amount(stage)
        self._bars.update(self._tasks[key], completed=stage.done, total=total, amount=amount)

    def _begin(self, title: str) -> Any:
        if not self._terminal:
            note(title)
            return None
        if self._bars is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=_BAR),
                TextColumn("{task.fields[amount]}"),
                TimeElapsedColumn(),
                console=stderr(),
                transient=True,
            )
            self._bars.start()
        room = max(self._bars.console.width - _BESIDE_TITLE, 20)
        shown = title if len(title) <= room else f"{title[: room - 1]}…"
        return self._bars.add_task(shown, total=None, amount="")


def _amount(stage: Stage) -> str:
    scale, unit = (1e6, "MB") if stage.unit == "bytes" else (1.0, stage.unit)
    if stage.stage == "load" and unit == "tensors":
        unit = "layers"
    done = f"{stage.done / scale:,.0f}"
    return f"{done} {unit}" if stage.total is None else f"{done} of {stage.total / scale:,.0f} {unit}"


class LiveText:
    """The end of a text that is being written, over a bar that compares it with the `expected` length.

    A context manager; `feed` takes the pieces. Where nothing can be drawn nothing is shown.
    """

    def __init__(self, title: str, expected: int | None = None) -> None:
        self._title = title
        self._expected = expected
        self._text = ""
        self._length = 0
        self._live: Any = None

    def __enter__(self) -> LiveText:
        if draws():
            from rich.live import Live

            self._live = Live(
                console=stderr(), transient=True, refresh_per_second=12, get_renderable=self._picture
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def feed(self, piece: str) -> None:
        """The next piece of the text."""
        self._length += len(piece)
        if self._live is not None:
            self._text = (self._text + piece)[-4096:]

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        tail = "\n".join(self._text.split("\n")[-_TAIL_LINES:])
        row = Table.grid(padding=(0, 1))
        waiting = self._length == 0
        bar = ProgressBar(
            total=self._expected,
            completed=self._length,
            width=20,
            pulse=waiting or self._expected is None,
        )
        amount = "waiting for the first text" if waiting else f"{self._length:,} characters"
        row.add_row(Text(self._title), bar, Text(amount, style="dim"))
        return Group(Text(tail, style="dim", no_wrap=True, overflow="ellipsis"), row)
