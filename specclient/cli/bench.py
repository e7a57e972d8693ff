"""`specclient bench`: does a prediction pay, on this traffic and this target?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import draws, guarded, note, stderr, stdout, write_json

if TYPE_CHECKING:
    from specclient.bench.cases import Case
    from specclient.bench.meters import Meters
    from specclient.bench.schedule import Block
    from specclient.bench.summary import Group
    from specclient.config import Target

_MOST_CLIENTS = 10_000
_STYLES = {"use it": "bold green", "do not": "bold red", "not enough evidence": "bold yellow"}


@guarded
def bench(
    requests: Annotated[
        Path | None,
        typer.Argument(help="JSONL of requests with `prediction`; none: built-in.", show_default=False),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option("--workload", "-w", help="A built-in workload; may be given again.")
    ] = None,
    clients: Annotated[str, typer.Option("--clients", help="Numbers of clients at once, as 1,8.")] = "1",
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="How often each case runs in each arm.")
    ] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the order and of the intervals.")] = 0,
    out: Annotated[
        Path, typer.Option("--out", help="Results file; an interrupted measurement goes on from it.")
    ] = Path("specclient-bench.jsonl"),
    html: Annotated[Path | None, typer.Option("--html", help="Also write the report to this file.")] = None,
    max_tokens: options.MaxTokens = None,
    target: options.TargetName = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    config: options.ConfigPath = None,
    as_json: options.Json = False,
) -> None:
    """Run requests without and with their predictions, in pairs, and give a verdict for each workload.

    The table goes to stdout, progress to stderr. Medians come with 95 % intervals; where they do not
    suffice for a verdict, it says so.
    """
    from specclient.bench.schedule import blocks
    from specclient.bench.summary import summarise
    from specclient.cli.clients import pick_target

    _check_places(out, html)
    cases = _cases(requests, workload, max_tokens)
    order = blocks(cases, clients=_numbers(clients), repeats=repeats, seed=seed)
    # A fallback's answer would say nothing of the target.
    picked, loaded = pick_target(target, provider, model, base_url=base_url, config=config, fallback=())
    settings = {"clients": clients, "repeats": repeats, "seed": seed, "max_tokens": max_tokens}
    store = _measure(picked, loaded, cases, order, out, settings)
    groups = summarise(store.samples.values(), seed=seed)
    if html is not None:
        _write_page(html, groups, store.about)
    if as_json:
        write_json({"about": store.about, "groups": [asdict(group) for group in groups]})
    else:
        _print(groups, store.about)


def _check_places(out: Path, html: Path | None) -> None:
    """Whatever would lose a measurement at its end is said before it begins."""
    from importlib.util import find_spec

    from specclient.errors import ConfigError

    for place in filter(None, (out, html)):
        if not place.absolute().parent.is_dir():
            raise ConfigError(f"{place.absolute().parent} is not a folder: make it, or write elsewhere.")
        if place.is_dir():
            raise ConfigError(f"{place} is a folder: name a file in it.")
    if html is not None and find_spec("plotly") is None:
        raise ConfigError("The HTML report needs plotly: pip install 'specclient[bench]'.")


def _write_page(path: Path, groups: list[Group], about: dict[str, Any]) -> None:
    from specclient.bench.page import page
    from specclient.errors import FileError

    try:
        path.write_text(page(groups, about), encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
    note(f"wrote {path}")


def _cases(path: Path | None, names: list[str] | None, max_tokens: int | None) -> list[Case]:
    from dataclasses import replace

    from specclient.bench.cases import built_in, from_jsonl
    from specclient.errors import ConfigError

    if path is not None and names:
        raise ConfigError("Give either a file of requests or --workload.")
    cases = from_jsonl(path) if path is not None else built_in(names) if names else built_in()
    if max_tokens is None:
        return cases
    return [replace(case, request={**case.request, "max_tokens": max_tokens}) for case in cases]


def _numbers(text: str) -> list[int]:
    from specclient.errors import ConfigError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if not 1 <= min(numbers) <= max(numbers) <= _MOST_CLIENTS:
        raise ConfigError(f"--clients takes numbers from 1 to {_MOST_CLIENTS:,}, as 1,8, not {text!r}.")
    return numbers


def _measure(
    target: Target, config: Any, cases: list[Case], order: list[Block], out: Path, settings: dict[str, Any]
) -> Any:
    import asyncio

    from specclient.bench.meters import Meters, peak_memory
    from specclient.bench.runner import Runner
    from specclient.bench.store import Store
    from specclient.cli.clients import load_engine
    from specclient.client import AsyncClient

    local = target.provider == "local"
    meters = Meters.find() if local else None
    store = Store(out, _about(target, cases, settings, meters))
    total = sum(len(block.trials) for block in order)
    if len(store.samples) == total:
        note(f"all {total} calls were done before and are kept in {out}: another --out measures anew")
        store.close()
        return store
    if local:
        load_engine(target)

    async def run() -> None:
        async with AsyncClient(target=target, config=config) as client:
            with _Progress(total, len(store.samples)) as progress:
                await Runner(client, store, meters, progress.block, progress.done).run(order)

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        ended = sum(sample.error is None for sample in store.samples.values())
        note(_interrupted(ended, total, out))
        raise
    finally:
        store.close()
    if local:
        store.about["peak_memory"] = peak_memory()
        store.about["device_memory"] = meters.device_memory() if meters else None
    return store


def _interrupted(done: int, total: int, out: Path) -> str:
    """What is left of a measurement that was broken off."""
    kept = f"{done} of {total} calls are done"
    if not done:
        return f"{kept}; nothing is kept"
    return f"{kept} and kept in {out}; the same command goes on from there"


def _about(
    target: Target, cases: list[Case], settings: dict[str, Any], meters: Meters | None
) -> dict[str, Any]:
    import platform
    from datetime import UTC, datetime

    from specclient.bench.store import fingerprint
    from specclient.config.masking import without_password

    url = without_password(target.base_url) if target.base_url else None
    model = target.model
    if model is None and target.provider == "local":
        from specclient_engine.models import DEFAULT_MODEL

        model = DEFAULT_MODEL
    place = {"provider": target.provider, "model": model, "base_url": url}
    gaps = ["energy and memory: the model does not run in this process"]
    if meters is not None:
        whole = ["energy of this process alone: the counters are the machine's"] if meters.read() else []
        gaps = meters.missing + whole
    return {
        "fingerprint": fingerprint(cases, {**settings, **place}),
        "target": target.name,
        **place,
        **settings,
        "cases": len(cases),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "not_measured": gaps,
    }


class _Progress:
    """A bar over all trials on stderr; where nothing can be drawn, a line for each block that is done."""

    def __init__(self, total: int, done: int) -> None:
        self._total = total
        self._before = done
        self._running = ""
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _Progress:
        if draws():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=stderr(), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("measuring", total=self._total, completed=self._before)
        elif self._before:
            note(f"{self._before} of {self._total} done before: going on")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def block(self, block: Block) -> None:
        """The block that begins."""
        trial = block.trials[0]
        title = f"{trial.case.workload}, {block.arm} prediction, {block.clients} at once"
        if self._bar is not None:
            self._bar.update(self._task, description=title)
        self._running = f"{title}: {', '.join(dict.fromkeys(trial.case.name for trial in block.trials))}"

    def done(self, done: int) -> None:
        """That block's end, `done` trials being in the results file."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        else:
            note(f"{done} of {self._total} done: {self._running}")


def _print(groups: list[Group], about: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from specclient.bench.words import (
        about_rows,
        gain_text,
        group_title,
        rows,
        shared_gaps,
        speculation_text,
    )

    console = stdout()
    for name, value in about_rows(about):
        console.print(Text(f"{name}: {value}", style="dim"))
    everywhere = shared_gaps(groups)
    for group in groups:
        table = Table(title=f"\n{group_title(group)}", title_justify="left", box=None, pad_edge=False)
        table.add_column("")
        for title in ("without", "with", "gain"):
            table.add_column(title, justify="right")
        for row in rows(group):
            table.add_row(row.label, *row.cells(group))
        console.print(table)
        for name, value in speculation_text(group):
            console.print(Text(f"{name}: {value}"))
        console.print(Text(f"verdict: {group.decision}", style=_STYLES[group.decision]), end="")
        console.print(Text(f" ({group.because})"))
        for gap in group.not_measured:
            if gap not in everywhere:
                console.print(Text(f"not measured: {gap}", style="dim"))
    for gap in everywhere:
        console.print(Text(f"not measured anywhere: {gap}", style="dim"))
    if len(groups) > 1:
        verdicts = Table(title="\nverdicts", title_justify="left", box=None, pad_edge=False)
        for title in ("", "whole call", ""):
            verdicts.add_column(title)
        for group in groups:
            decision = Text(group.decision, style=_STYLES[group.decision])
            verdicts.add_row(group_title(group), gain_text(group.gain), decision)
        console.print(verdicts)
