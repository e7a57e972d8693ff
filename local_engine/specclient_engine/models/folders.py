"""Converted folders in the cache: their names, whether they are whole, and what interrupted work left."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from specclient_engine.models.cache import cache_root, write_whole
from specclient_engine.models.known import KNOWN_MODELS, KnownModel

# Part of the converted folder's name: raise it when the conversion's result changes.
_FORMAT = 2
_SIZES = "specclient-sizes.json"
_UNFINISHED = ".unfinished"


def converted_folder(file: str, identity: str) -> Path:
    """Named for people to read, and unique by content and by the conversion's own version."""
    return cache_root() / "models" / f"{Path(file).stem.lower()}-{identity[:12]}-v{_FORMAT}"


def folder_of(row: KnownModel) -> Path:
    """Where a known model's converted folder is, or will be."""
    return converted_folder(row.file, row.sha256)


def note_sizes(folder: Path) -> None:
    """Notes what is in a folder that was just converted, for `is_whole`."""
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    write_whole(folder / _SIZES, f"{json.dumps(sizes, indent=1)}\n".encode())


def is_whole(folder: Path) -> bool:
    """Whether each file that the conversion wrote is there in its size; cheap enough for every start."""
    try:
        sizes = json.loads((folder / _SIZES).read_text(encoding="utf-8"))
        return bool(sizes) and all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def new_unfinished(folder: Path) -> Path:
    """Where to convert to before it is whole.

    Never the same twice: a conversion that a killed process started may still write for a moment.
    """
    return folder.with_name(f"{folder.name}{_UNFINISHED}-{secrets.token_hex(4)}")


def unfinished(folder: Path) -> list[Path]:
    """What conversions to `folder` left that did not come to their end."""
    return _beginning(folder.with_name(folder.name + _UNFINISHED))


def finished(unfinished: Path) -> Path:
    """The folder that one of `unfinished` was to become."""
    return unfinished.with_name(unfinished.name.partition(_UNFINISHED)[0])


def leftovers(row: KnownModel) -> list[Path]:
    """What an interrupted fetch or conversion of a known model left in the cache, and a damaged folder."""
    folder = folder_of(row)
    damaged = [folder] if folder.exists() and not is_whole(folder) else []
    return [*damaged, *unfinished(folder), *_beginning(download_of(row).with_name(row.file + ".part"))]


def strays() -> list[Path]:
    """Unfinished conversions of files that are no known model's."""
    known = tuple(folder_of(row).name for row in KNOWN_MODELS)
    models = cache_root() / "models"
    found = sorted(models.iterdir()) if models.is_dir() else []
    return [path for path in found if _UNFINISHED in path.name and not path.name.startswith(known)]


def download_of(row: KnownModel) -> Path:
    """Where a known model's file is, or will be."""
    return cache_root() / "downloads" / row.file


def _beginning(path: Path) -> list[Path]:
    """What lies beside `path` under a name that begins with its own."""
    if not path.parent.is_dir():
        return []
    found = (other for other in path.parent.iterdir() if other.name.startswith(path.name))
    return sorted(other for other in found if other.suffix != ".lock")
