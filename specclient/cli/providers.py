"""`specclient providers`: what endpoints document, with sources and dates; no network."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, stdout, write_json

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
    from specclient.facts import capabilities
    from specclient_providers import provider_names

    day = _day(on)
    names = (name,) if name else provider_names()
    found = [capabilities(each, model=model, api=api, api_version=api_version, on=day) for each in names]
    if as_json:
        rows = [row.to_dict() for row in found]
        write_json(rows[0] if name else rows)
    elif name:
        print(found[0])
    else:
        stdout().print(_table(found))


def _day(text: str | None) -> date | None:
    from specclient.errors import ConfigError

    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise ConfigError(f"--on takes a day as YYYY-MM-DD, not {text!r}.") from None


def _table(found: list[Capabilities]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("provider", "prediction", "checked", "counters", "timings", "speculation"):
        table.add_column(title, overflow="fold")
    for row in found:
        table.add_row(
            row.provider,
            _status(row),
            "" if row.prediction.checked is None else str(row.prediction.checked),
            row.counters.state,
            row.timings.state,
            ", ".join(row.speculation.methods) or row.speculation.state,
        )
    return table


def _status(row: Capabilities) -> Text:
    """The state of `prediction` in a few words; an end that has come or is near is one of them."""
    from rich.text import Text

    prediction: Any = row.prediction
    if prediction.why_not == "model" and row.model is None:
        rules = [rule for rule in row.per_model if rule.state == "documented" and not rule.expired]
        ends = {rule.until for rule in rules if rule.until}
        return Text("for some models" + (f", until {min(ends)}" if ends else ""), style="green")
    if prediction.expired:
        return Text(f"ended {prediction.until}", style="red")
    if not prediction.supported:
        return Text(_WHY_NOT.get(prediction.why_not, prediction.why_not), style="dim")
    if prediction.ends_soon:
        return Text(f"supported, ends {prediction.until}", style="yellow")
    return Text("supported (preview)" if prediction.preview else "supported", style="green")
