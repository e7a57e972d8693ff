"""`specclient models`: the models that the engine knows by name, and those in the cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, note, print_columns, write_json

if TYPE_CHECKING:
    from specclient_engine.models import KnownModel

models = typer.Typer(no_args_is_help=True, help="Models of the embedded engine: list, fetch, find, remove.")
Name = Annotated[str, typer.Argument(help="A known name.", show_default=False)]


@models.command("list")
@guarded
def list_models(as_json: options.Json = False) -> None:
    """List the known models and whether they are in the cache."""
    from specclient_engine.models import DEFAULT_MODEL, KNOWN_MODELS, strays

    rows = [_as_dict(row) for row in KNOWN_MODELS]
    if as_json:
        write_json(rows)
        return
    table = [("name", "model", "size", "licence", "cached")]
    for row in rows:
        name = f"{row['name']} (default)" if row["name"] == DEFAULT_MODEL else str(row["name"])
        size = f"{row['size'] / 1e6:,.0f} MB"
        table.append((name, row["title"], size, row["licence"], row["path"] or "no"))
    print_columns(table)
    for row in rows:
        if row["leftover_bytes"]:
            again = f"specclient models fetch {row['name']} goes on with it"
            _note_leftover(row["name"], row["leftover_bytes"], f"unfinished or damaged: {again}")
    for path in strays():
        _note_leftover(path.name, _size(path), "an interrupted conversion's")


@models.command("fetch")
@guarded
def fetch_model(
    name: Annotated[str, typer.Argument(help="A known name, or a hub id (owner/name).", show_default=False)],
    as_json: options.Json = False,
) -> None:
    """Fetch a model, check its hash and convert it, once; print where it is."""
    from specclient.cli.progress import EngineProgress
    from specclient.core.engines import check_installed, made_ready
    from specclient_engine.models import locate

    if "/" not in name:
        _known(name)
    check_installed()
    with made_ready(), EngineProgress() as progress:
        files = locate(name, progress)
    if as_json:
        write_json({"name": files.name, "path": str(files.path)})
    else:
        print(files.path)


@models.command("path")
@guarded
def model_path(name: Name, as_json: options.Json = False) -> None:
    """Print where a model lies in the cache; exit 1 where it does not."""
    row = _known(name)
    path = _place(row)
    if as_json:
        write_json(_as_dict(row))
    elif path is not None:
        print(path)
    if path is None:
        note(f"{row.name} is not in the cache: specclient models fetch {row.name}")
        raise typer.Exit(1)


@models.command("remove")
@guarded
def remove_model(name: Name, as_json: options.Json = False) -> None:
    """Remove a model from the cache, with its download and what interrupted work left."""
    from specclient_engine.models import remove, remove_stray, strays

    stray = next((path for path in strays() if path.name == name), None)
    if stray is None:
        row = _known(name)
        name, freed = row.name, remove(row)
    else:
        freed = remove_stray(stray)
    if as_json:
        write_json({"name": name, "freed_bytes": freed})
    else:
        note(f"{name}: {freed / 1e6:,.0f} MB freed" if freed else f"{name} was not in the cache")


def _note_leftover(name: str, size: int, what: str) -> None:
    note(f"{name}: {size / 1e6:,.0f} MB are {what}; specclient models remove {name} frees them")


def _known(name: str) -> KnownModel:
    from specclient.errors import ConfigError
    from specclient_engine.models import KNOWN_MODELS, known_model

    row = known_model(name)
    if row is None:
        names = ", ".join(model.name for model in KNOWN_MODELS)
        raise ConfigError(f"No known model is called {name!r}; known are {names}.")
    return row


def _place(row: KnownModel) -> Path | None:
    from specclient_engine.models import cached

    return cached(row)


def _size(path: Path) -> int:
    from specclient_engine.models.cache import bytes_below

    return bytes_below(path)


def _as_dict(row: KnownModel) -> dict[str, Any]:
    from specclient_engine.models import leftovers

    path = _place(row)
    return {
        "name": row.name,
        "title": row.title,
        "size": row.size,
        "licence": row.licence,
        "sha256": row.sha256,
        "aliases": list(row.aliases),
        "path": None if path is None else str(path),
        "leftover_bytes": sum(_size(left) for left in leftovers(row)),
    }
