"""`specclient config`: every value of every target with its origin; secrets masked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import EXIT_USAGE, guarded, note, print_columns, write_json

if TYPE_CHECKING:
    from specclient.config import UsedTargets

config = typer.Typer(no_args_is_help=True, help="Show and check the configuration.")


@config.command("show")
@guarded
def show(
    target: options.TargetName = None, path: options.ConfigPath = None, as_json: options.Json = False
) -> None:
    """Show the targets: each value with where it came from. Values that are defaults are left out.

    The default target is shown as a call gets it that names none: SPECCLIENT_MODEL and the like are in it.
    With --target, a target is shown as a call gets it that names it: they are not.

    What is wrong with them is told on stderr, as `config check` tells it; keys are not looked for.
    """
    from specclient.cli.clients import read_config
    from specclient.cli.config_check import of_config, of_target
    from specclient.config import UsedTargets, resolve_target, used_targets

    loaded = read_config(path)
    if target:
        named_alone = {target: resolve_target(target, config=loaded)}
        used = UsedTargets(named_alone, loaded.default, loaded.origins.get("default"))
    else:
        used = used_targets(loaded)
    shown = {name: each.shown() for name, each in used.targets.items()}
    named = [name for name in shown if name in loaded.targets]
    doubts = [f"{name}: {said}" for name in named for said in of_target(loaded, name, keys=False)]
    for doubt in (*doubts, *(() if target else of_config(loaded).values())):
        note(f"warning: {doubt}")
    if as_json:
        write_json({"path": loaded.path, "default": used.default, "targets": _plain(shown)})
        return
    print(f"file     {loaded.path or 'none found'}")
    print(f"default  {_default(used)}")
    for name, fields in shown.items():
        _print_target(name, fields, loaded.path)


@config.command("check")
@guarded
def check(path: options.ConfigPath = None, as_json: options.Json = False) -> None:
    """Check every target, its provider, its fallbacks and its key, the default, the other sections and the
    names of the environment's variables; exit 2 where something is wrong."""
    from specclient.cli.clients import read_config
    from specclient.cli.config_check import of_config, of_target, of_variables

    unknown: list[str] = []
    loaded = read_config(path, variables=False, unknown_keys=unknown)
    found = {name: of_target(loaded, name, apart=loaded.targets) for name in sorted(loaded.targets)}
    problems = {name: " ".join(said) for name, said in found.items() if said}
    wrong_targets = len(problems)
    misspelt, strange = of_variables(loaded)
    others = {**({"file": " And ".join(unknown)} if unknown else {}), **of_config(loaded), **misspelt}
    for said in strange:
        note(said)
    problems |= others
    if as_json:
        write_json({"path": loaded.path, "ok": not problems, "problems": problems})
    else:
        for name, said_of_it in found.items():
            print("\n".join(f"{name}: {said}" for said in said_of_it or ("ok",)))
        if not loaded.targets:
            print("no targets")
        for name, said in others.items():
            print(f"{name}: {said}")
    if wrong_targets:
        note(f"{wrong_targets} of {len(loaded.targets)} targets have a problem")
    if problems:
        raise typer.Exit(EXIT_USAGE)


def _default(used: UsedTargets) -> str:
    if used.default is None:
        return "none: commands use the embedded engine (provider local), a client has to name a target"
    return f"{used.default}  ({used.default_origin})"


def _print_target(name: str, fields: dict[str, tuple[str, str]], path: Path | None) -> None:
    print(f"\n[targets.{name}]")
    rows = [
        (field, value, _short(origin, field, path))
        for field, (value, origin) in fields.items()
        if origin != "default"
    ]
    if rows:
        print_columns(rows)


def _short(origin: str, field: str, path: Path | None) -> str:
    """An origin without what stands above it already: the file's path, the target and the field."""
    if path is None or not origin.startswith(str(path)):
        return origin
    layer, _, place = origin.removeprefix(str(path)).partition(": ")
    return f"file{layer}" if place.endswith(f".{field}") else f"file{layer}: {place}"


def _plain(shown: dict[str, dict[str, tuple[str, str]]]) -> dict[str, Any]:
    return {
        name: {field: {"value": value, "origin": origin} for field, (value, origin) in fields.items()}
        for name, fields in shown.items()
    }
