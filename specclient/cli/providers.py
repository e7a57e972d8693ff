"""`specclient providers`: what endpoints document, with sources and dates; no network."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, note, stdout, write_json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from specclient.facts import Capabilities

_WHY_NOT = {
    "model": "not for this model",
    "api": "not for this API",
    "api_version": "not in this api-version",
    "not_yet": "not yet",
}
_APIS = ("chat", "completions", "responses")
_SHORT = {"documented": "yes", "unknown": "?"}
"""Whether answers report something; anything else is a dash."""
_COLUMNS = ("provider", "prediction", "drafts from", "counters", "timings")
_LEAST = 42
"""Cells that the first two columns need without breaking most of their words."""


@guarded
def providers(
    name: Annotated[str | None, typer.Argument(help="One provider in full.", show_default=False)] = None,
    model: options.Model = None,
    api: Annotated[str, typer.Option("--api", help="chat, completions or responses.")] = "chat",
    api_version: options.ApiVersion = None,
    on: Annotated[
        str | None, typer.Option("--on", help="As of a day, as YYYY-MM-DD (default: today).")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what providers document about predictions, counters and timings."""
    from specclient.errors import ConfigError
    from specclient.facts import capabilities
    from specclient_providers import provider_names

    if api not in _APIS:
        raise ConfigError(f"--api is one of {', '.join(_APIS)}, not {api!r}.")
    day = _day(on)
    names = (name,) if name else provider_names()
    found = [capabilities(each, model=model, api=api, api_version=api_version, on=day) for each in names]
    if as_json:
        rows = [row.to_dict() for row in found]
        write_json(rows[0] if name else rows)
    elif name:
        print(found[0].render(stdout().width))
    else:
        console = stdout()
        columns = _shown(console.width)
        console.print(_table(found, columns))
        if columns < len(_COLUMNS):
            note(f"Not shown for want of room: {', '.join(_COLUMNS[columns:])} (--json has everything).")
        note("One in full, with sources and dates: specclient providers NAME [--model M]")


def _day(text: str | None) -> date | None:
    from specclient.errors import ConfigError

    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise ConfigError(f"--on takes a day as YYYY-MM-DD, not {text!r}.") from None


def _shown(width: int) -> int:
    """How many columns a terminal has room for: provider and prediction always, then the others in order."""
    room = width - _LEAST
    shown = 2
    for needed in map(len, _COLUMNS[2:]):
        room -= needed + 2
        shown += room >= 0
    return shown


def _table(found: list[Capabilities], columns: int) -> Table:
    """One line a provider: those that take a prediction, those that draft from text, the others."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in _COLUMNS[:columns]:
        table.add_column(title, no_wrap=title != "prediction", overflow="fold")
    groups: list[list[Capabilities]] = [[], [], []]
    for row in found:
        groups[0 if _takes(row) else 1 if _drafts_from(row) else 2].append(row)
    for group in groups:
        for at, row in enumerate(group):
            cells = (
                row.provider,
                _status(row),
                _drafts_from(row) or "-",
                _SHORT.get(row.counters.state, "-"),
                _SHORT.get(row.timings.state, "-"),
            )
            table.add_row(*cells[:columns], end_section=at == len(group) - 1)
    return table


def _takes(row: Capabilities) -> bool:
    living = any(rule.state == "documented" and not rule.expired for rule in row.per_model)
    return row.prediction.supported or (row.model is None and row.prediction.why_not == "model" and living)


def _drafts_from(row: Capabilities) -> str:
    """The known text that the server itself can draft from, when it was started so."""
    if any(rule.shapes == ("tags",) for rule in row.per_model):
        return "tags"
    if row.speculation.drafts_from_corpus:
        return "corpus"
    return "prompt" if row.speculation.drafts_from_prompt else ""


def _status(row: Capabilities) -> Text:
    """The state of `prediction` in a few words; an end that has come or is near is one of them."""
    from rich.text import Text

    prediction: Any = row.prediction
    if prediction.why_not == "model" and row.model is None:
        rules = [rule for rule in row.per_model if rule.state == "documented" and not rule.expired]
        if not rules:
            return Text("ended for all models", style="red")
        ends = {rule.until for rule in rules if rule.until}
        near = any(rule.ends_soon for rule in rules)
        end = f", until {min(ends)}{' (soon)' if near else ''}" if ends else ""
        return Text(f"some models{end}", style="yellow" if near else "green")
    if prediction.expired:
        return Text(f"ended {prediction.until}", style="red")
    if not prediction.supported:
        return Text(_WHY_NOT.get(prediction.why_not, prediction.why_not), style="dim")
    if prediction.ends_soon:
        return Text(f"yes, until {prediction.until} (soon)", style="yellow")
    if prediction.shapes == ("tags",):
        return Text("in the prompt", style="green")
    return Text("yes, preview" if prediction.preview else "yes", style="green")
