"""`specclient explain`: what would be sent, and why; nothing is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import as_typed, guarded, note, read_stdin, stdout, write_json

if TYPE_CHECKING:
    from specclient.core.plan import Plan


@guarded
def explain(
    request: Annotated[
        str | None,
        typer.Argument(help="A JSON file with a request, '-' for stdin.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Explain the edit of this file instead.")
    ] = None,
    instruction: Annotated[
        str, typer.Option("--instruction", "-i", help="The edit's instruction.")
    ] = "(instruction)",
    target: options.TargetName = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    api_version: options.ApiVersion = None,
    api: Annotated[str, typer.Option("--api", help="chat, completions or responses.")] = "chat",
    config: options.ConfigPath = None,
    as_json: options.Json = False,
) -> None:
    """Print the plan for a request: its body against what was asked, the prediction's way, the reasons.

    Without a request a small example is planned. There is no network and no model. A field that OpenAI
    does not document, or the embedded engine not know, is told on stderr, with the one that may be meant.
    """
    from specclient.cli.clients import pick_target
    from specclient.dry_run import plan as dry_run

    picked, loaded = pick_target(
        target, provider, model, base_url=base_url, api_version=api_version, config=config
    )
    asked = _request(request, file, instruction)
    plan = dry_run(asked, target=picked, api=api, config=loaded)
    for said in _strange(asked, api, in_process=plan.facts.in_process):
        note(said)
    if as_json:
        write_json(as_dict(plan))
    else:
        _print(plan, asked)


def _strange(asked: dict[str, Any], api: str, *, in_process: bool) -> list[str]:
    """A sentence for each key that is no parameter: it may be misspelt, or one provider's own."""
    from difflib import get_close_matches

    from specclient.client.params import BODIES
    from specclient.core.local_request import PARAMETERS

    if api == "responses":  # its parameters are others
        return []
    known, fate = BODIES[api], "is no parameter of OpenAI's and would be sent as it stands"
    if in_process:
        known, fate = PARAMETERS, "is no parameter of the embedded engine's and would be refused"
    found = {key: get_close_matches(key, known, n=1, cutoff=0.8) for key in asked if key not in known}
    return [
        f"{key} {fate}" + (f"; did you mean {close[0]}?" if close else ".") for key, close in found.items()
    ]


def as_dict(plan: Plan) -> dict[str, Any]:
    """The plan as plain values."""
    return {
        "provider": plan.facts.provider,
        "model": plan.facts.model,
        "url": plan.facts.url,
        "query": dict(plan.query),
        "headers": dict(plan.headers),
        "body": plan.body,
        "outcome": plan.outcome,
        "reasons": list(plan.reasons),
        "notes": list(plan.notes),
        "switched_on": sorted(plan.hidden),
    }


def _request(request: str | None, file: Path | None, instruction: str) -> dict[str, Any]:
    from specclient.edit import EditRun
    from specclient.errors import ConfigError
    from specclient.textfile import FileImage

    if file is not None:
        body = EditRun.start(file, as_typed("--instruction", instruction) or "").request
        return {**body, "prediction": {"type": "content", "content": body["prediction"].text}}
    if request is None:
        known = "def foo():\n    return 1\n"
        return {
            "messages": [{"role": "user", "content": f"Rename foo to bar:\n\n{known}"}],
            "prediction": {"type": "content", "content": known},
        }
    text = read_stdin() if request == "-" else FileImage.load(request).text
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{'stdin' if request == '-' else request} is not JSON: {error}.") from None
    if not isinstance(parsed, dict):
        raise ConfigError("A request is a JSON object with messages.")
    return parsed


def _print(plan: Plan, asked: dict[str, Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = stdout()
    where = "in this process" if plan.facts.in_process else f"POST {plan.facts.url}"
    console.print(Text(f"{plan.facts.title}: {where}", style="bold"))
    console.print(Text(f"prediction: {plan.outcome}"))
    for reason in (*plan.reasons, *plan.notes):
        console.print(Padding(Text(str(reason)), (0, 0, 0, 2), expand=False))
    for name, value in plan.headers.items():
        console.print(Text(f"  + {name}: {value}", style="green"))
    console.print(Text("body, against what was asked:"))
    for line in _body_diff(asked, plan.body):
        style = {"+": "green", "-": "red"}.get(line[:1], "")
        console.print(Text(line, style=style), soft_wrap=True)


def _body_diff(asked: dict[str, Any], sent: dict[str, Any]) -> list[str]:
    from difflib import ndiff

    # A key is not changed that stands at another place.
    order = list(asked)
    sent = dict(
        sorted(sent.items(), key=lambda item: order.index(item[0]) if item[0] in asked else len(order))
    )
    before, after = (json.dumps(body, indent=2, ensure_ascii=False).split("\n") for body in (asked, sent))

    def bare(lines: list[str]) -> list[str]:
        # Compared without the commas, a key that is added at the end changes no line before it.
        return [line.removesuffix(",") for line in lines]

    whole = {"-": iter(before), "+": iter(after)}
    found = []
    for line in ndiff(bare(before), bare(after)):
        sign = line[:1]
        if sign == "?":
            continue
        if sign == " ":
            next(whole["-"])
        found.append(f"{sign} {next(whole['-' if sign == '-' else '+'])}")
    return found
