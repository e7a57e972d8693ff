"""`specclient config`: every value of every target with its origin; secrets masked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import EXIT_USAGE, guarded, note, stdout, write_json

if TYPE_CHECKING:
    from specclient.config import Config

config = typer.Typer(no_args_is_help=True, help="Show and check the configuration.")


@config.command("show")
@guarded
def show(
    target: options.TargetName = None, path: options.ConfigPath = None, as_json: options.Json = False
) -> None:
    """Show the targets: each value with where it came from. Values that are defaults are left out."""
    from specclient.cli.clients import read_config
    from specclient.config import resolve_target

    loaded = read_config(path)
    names = [target] if target else sorted(loaded.targets)
    shown = {name: resolve_target(name, config=loaded).shown() for name in names}
    if as_json:
        write_json({"path": loaded.path, "default": loaded.default, "targets": _plain(shown)})
        return
    print(f"file     {loaded.path or 'none found'}")
    print(f"default  {loaded.default or 'none'}")
    for name, fields in shown.items():
        stdout().print(_table(name, fields))


@config.command("check")
@guarded
def check(path: options.ConfigPath = None, as_json: options.Json = False) -> None:
    """Check every target, its provider, its fallbacks and its key; exit 2 where something is wrong."""
    from specclient.cli.clients import read_config

    loaded = read_config(path)
    problems = {name: problem for name in sorted(loaded.targets) if (problem := _problem(loaded, name))}
    if as_json:
        write_json({"path": loaded.path, "ok": not problems, "problems": problems})
    else:
        for name in sorted(loaded.targets):
            print(f"{name}: {problems.get(name, 'ok')}")
        if not loaded.targets:
            print("no targets")
    if problems:
        note(f"{len(problems)} of {len(loaded.targets)} targets have a problem")
        raise typer.Exit(EXIT_USAGE)


def _problem(loaded: Config, name: str) -> str | None:
    """What would stop a call to the target before anything is sent, or None."""
    import os

    from specclient.config import api_key, resolve_target
    from specclient.errors import ConfigError
    from specclient_providers import OverrideError, UnknownProvider, resolve

    try:
        target = resolve_target(name, config=loaded)
        facts = resolve(
            target.provider,
            model=target.model,
            api_version=target.api_version,
            base_url=target.base_url,
            overrides=target.overrides,
        )
        if not facts.in_process and facts.base_url is None:
            return f"provider {target.provider} needs a base_url"
        for other in target.fallback:
            resolve_target(other, config=loaded)
        api_key(
            target,
            os.environ,
            key_env=facts.key_env,
            directory=loaded.directory,
            required=not facts.self_hosted,
        )
    except (ConfigError, UnknownProvider, OverrideError) as error:
        return str(error)
    return None


def _table(name: str, fields: dict[str, tuple[str, str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    # As Text: a plain string in brackets would be taken for markup.
    title = Text(f"\n[targets.{name}]")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, show_header=False)
    table.add_column("field", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("origin", style="dim", overflow="fold")
    table.title_style = "bold"
    for field, (value, origin) in fields.items():
        if origin != "default":
            table.add_row(field, Text(value), Text(origin))
    return table


def _plain(shown: dict[str, dict[str, tuple[str, str]]]) -> dict[str, Any]:
    return {
        name: {field: {"value": value, "origin": origin} for field, (value, origin) in fields.items()}
        for name, fields in shown.items()
    }
