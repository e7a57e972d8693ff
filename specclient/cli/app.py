"""The commands, put together. Each module loads what it works with when it is called, so help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from specclient._version import __version__
from specclient.cli import (
    bench,
    chat,
    config,
    edit,
    explain,
    launch,
    models,
    plan,
    probe,
    providers,
    serve,
    trace,
)

app = typer.Typer(
    name="specclient",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
    help="One prediction argument for every LLM endpoint, and the truth about what it did.",
    epilog="Results on stdout, everything else on stderr. Exit: 0 done, 1 failed, 2 usage, 130 interrupted.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"specclient {__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """One prediction argument for every LLM endpoint, and the truth about what it did."""


app.command("edit")(edit.edit)
app.command("chat")(chat.chat)
app.command("explain")(explain.explain)
app.command("providers")(providers.providers)
app.command("plan")(plan.plan)
app.command("probe")(probe.probe)
app.command("serve")(serve.serve)
# What follows the tool's name is the tool's own.
app.command("launch", context_settings={"allow_interspersed_args": False})(launch.launch)
app.command("bench")(bench.bench)
app.command("trace")(trace.trace)
app.add_typer(models.models, name="models")
app.add_typer(config.config, name="config")
