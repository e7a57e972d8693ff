"""`specclient providers`: what endpoints document, with sources and dates; no network."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, stdout, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from specclient_providers import EndpointFacts

_STYLES = (("ends", "yellow"), ("preview", "yellow"), ("supported", "green"), ("some", "green"))
_WHY_NOT = {
    "model": "not for this model",
    "api": "not for this API",
    "api_version": "not in this api-version",
    "expired": "ended",
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
    from specclient_providers import provider_names, resolve

    day = _day(on)
    names = (name,) if name else provider_names()
    facts = [resolve(each, model=model, api=api, api_version=api_version, on=day) for each in names]
    if as_json:
        rows = [as_dict(row) for row in facts]
        write_json(rows[0] if name else rows)
    elif name:
        stdout().print(_one(facts[0]))
    else:
        stdout().print(_all(facts))


def _day(text: str | None) -> date | None:
    from specclient.errors import ConfigError

    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise ConfigError(f"--on takes a day as YYYY-MM-DD, not {text!r}.") from None


def as_dict(facts: EndpointFacts) -> dict[str, Any]:
    """The facts as plain values; `prediction.status` is the word that the table shows."""
    row = asdict(facts)
    row["prediction"]["status"] = status(facts)
    return row


def status(facts: EndpointFacts) -> str:
    """The state of `prediction` in a word or two."""
    prediction = facts.prediction
    if prediction.expired:
        return f"ended {prediction.until}"
    if prediction.supported:
        if prediction.ends_soon:
            return f"supported, ends {prediction.until}"
        return "supported (preview)" if prediction.preview else "supported"
    if prediction.code == "model" and facts.model is None:
        return "for some models"
    return _WHY_NOT.get(prediction.code, prediction.code)


def _models(facts: EndpointFacts) -> str:
    """The models that a rule supports, as its patterns."""
    from specclient_providers import registry

    rules = registry.get(facts.provider).prediction
    patterns = [pattern for rule in rules if rule.claim.holds(facts.on) for pattern in rule.models]
    return ", ".join(dict.fromkeys(pattern for pattern in patterns if pattern != "*"))


def _all(facts: list[EndpointFacts]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("provider", "prediction", "until", "checked", "counters", "timings", "speculation"):
        table.add_column(title, overflow="fold")
    for row in facts:
        claim = row.prediction.claim
        table.add_row(
            row.provider,
            _coloured(status(row)),
            _text(claim.until),
            _text(claim.checked),
            row.answer.counters.state,
            row.answer.timings.state,
            ", ".join(row.speculation.methods) or row.speculation.claim.state,
        )
    return table


def _coloured(text: str) -> Any:
    from rich.text import Text

    return Text(text, style=next((style for word, style in _STYLES if word in text), "dim"))


def _one(facts: EndpointFacts) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=facts.title, title_justify="left", box=None, pad_edge=False, show_header=False)
    table.add_column("", style="dim", no_wrap=True)
    table.add_column("", overflow="fold")
    for label, value in _rows(facts):
        if value:
            table.add_row(label, value if isinstance(value, Text) else Text(str(value)))
    return table


def _rows(facts: EndpointFacts) -> list[tuple[str, Any]]:
    prediction, claim, billing = facts.prediction, facts.prediction.claim, facts.billing
    charged = {True: "yes", False: "no", None: "not documented"}[billing.rejected_charged]
    rows: list[tuple[str, Any]] = [
        ("address", facts.base_url or ("in this process" if facts.in_process else "yours to give")),
        ("key from", " or ".join(facts.key_env)),
        ("as of", facts.on),
        ("prediction", _coloured(status(facts))),
        ("models", _models(facts)),
        ("since", claim.since),
        ("until", claim.until),
        ("checked", _text(claim.checked) + (f", {claim.certainty}" if claim.certainty != "verified" else "")),
        ("source", claim.source),
        ("note", claim.note),
        ("shapes", ", ".join(prediction.shapes)),
        ("not together with", ", ".join(f"{c.parameter} ({c.remedy})" for c in prediction.conflicts)),
        ("rejected tokens charged", f"{charged}{f', {billing.note}' if billing.note else ''}"),
        ("unknown fields", facts.request.unknown_fields.state),
        ("counters", _claim(facts.answer.counters)),
        ("timings", _claim(facts.answer.timings)),
        ("speculation", ", ".join(facts.speculation.methods) or _claim(facts.speculation.claim)),
        ("per request", facts.speculation.per_request),
        ("to switch on", facts.speculation.switch_on),
    ]
    rows += [("restriction", text) for text in facts.restrictions]
    rows += [("caution", f"{caution.parameter}: {caution.text}") for caution in facts.request.cautions]
    return rows


def _claim(claim: Any) -> str:
    return f"{claim.state} ({claim.source})" if claim.source else str(claim.state)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
