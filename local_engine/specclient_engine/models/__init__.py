"""Find a model, whatever it is named by, as a folder of safetensors.

`locate` takes a known name, a folder, a GGUF file or a hub id. What has to be fetched or converted is,
once, into the cache; the folder gets its final name only when it is whole, so an interrupted conversion
starts over and never leaves half a model. A folder of the cache that is no longer whole is made anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from specclient_engine.api import ProgressCallback
from specclient_engine.errors import EngineError, ModelCorrupt, ModelNotFound
from specclient_engine.models.cache import (
    bytes_below,
    cache_root,
    discard,
    kept_sha256,
    locked,
    told_when_full,
)
from specclient_engine.models.folders import (
    converted_folder,
    download_of,
    finished,
    folder_of,
    is_whole,
    leftovers,
    new_unfinished,
    note_sizes,
    strays,
    unfinished,
)
from specclient_engine.models.known import DEFAULT_MODEL, KNOWN_MODELS, KnownModel, known_model
from specclient_engine.models.sources import fetch, fetch_folder

__all__ = [
    "DEFAULT_MODEL",
    "KNOWN_MODELS",
    "KnownModel",
    "ModelFiles",
    "cache_root",
    "cached",
    "known_model",
    "leftovers",
    "locate",
    "remove",
    "remove_stray",
    "strays",
]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model ready to load: `path` holds config.json, tokenizer.json and *.safetensors."""

    name: str
    path: Path


def locate(model: str | Path, progress: ProgressCallback | None = None) -> ModelFiles:
    """The folder of `model`, fetched and converted if need be.

    A string that is a known name means that model, also where a file or folder is called so: `./name` or a
    Path means the latter. Raises ModelNotFound, ModelCorrupt, NotEnoughDisk or CacheUnusable, each saying
    what to do.
    """
    row = known_model(model) if isinstance(model, str) else None
    if row is not None:
        return ModelFiles(row.name, _known(row, progress))
    try:
        path = Path(model).expanduser()
    except RuntimeError:
        raise ModelNotFound(
            f"the home directory in {str(model)!r} is not known here: give the whole path of the model"
        ) from None
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return ModelFiles(path.stem, _converted(path, kept_sha256(path), progress))
    if str(model).count("/") == 1 and not str(model).startswith((".", "/", "~")):
        return ModelFiles(str(model), _folder(fetch_folder(str(model))).path)
    names = ", ".join(m.name for m in KNOWN_MODELS)
    raise ModelNotFound(
        f"there is no model at {str(model)!r}: give a folder, a GGUF file, a hub id (owner/name), "
        f"or one of {names}."
    )


def cached(row: KnownModel) -> Path | None:
    """The converted folder of a known model, or None when it is not there yet, or no longer whole."""
    folder = folder_of(row)
    return folder if is_whole(folder) else None


def remove(row: KnownModel) -> int:
    """Take a known model out of the cache, with its download and what interrupted work left: bytes freed.

    Raises EngineError while another process fetches or converts it.
    """
    if not _parts(row):
        return 0
    with _alone(row.name, download_of(row), folder_of(row)):
        return sum(_freed(path) for path in _parts(row))


def remove_stray(path: Path) -> int:
    """Take away one of `strays`: bytes freed. Raises EngineError while another process converts to it."""
    with _alone(path.name, finished(path)):
        return _freed(path)


@contextmanager
def _alone(name: str, *places: Path) -> Iterator[None]:
    try:
        with ExitStack() as locks:
            for place in places:
                locks.enter_context(locked(place, wait=False))
            yield
    except BlockingIOError:
        raise EngineError(
            f"{name} is being fetched or converted by another process: remove it when that has ended"
        ) from None


def _freed(path: Path) -> int:
    size = bytes_below(path)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return size


def _parts(row: KnownModel) -> list[Path]:
    download = download_of(row)
    folder = cached(row)
    return [
        *([] if folder is None else [folder]),
        *([download] if download.exists() else []),
        *leftovers(row),
    ]


def _folder(path: Path) -> ModelFiles:
    for needed in ("config.json", "tokenizer.json"):
        if not (path / needed).is_file():
            raise ModelNotFound(
                f"{path} has no {needed}: a model folder holds config.json, tokenizer.json and *.safetensors."
            )
    if not any(path.glob("*.safetensors")):
        raise ModelNotFound(f"{path} has no *.safetensors: save the model with save_pretrained first.")
    return ModelFiles(path.name, path)


def _known(row: KnownModel, progress: ProgressCallback | None) -> Path:
    folder, download = folder_of(row), download_of(row)
    if is_whole(folder):
        return folder
    with locked(download), told_when_full(download.parent):
        file = fetch(row, download.parent, progress)
    return _converted(file, row.sha256, progress)


def _converted(file: Path, identity: str, progress: ProgressCallback | None) -> Path:
    folder = converted_folder(file.name, identity)
    if is_whole(folder):
        return folder
    with locked(folder), told_when_full(folder.parent):
        if is_whole(folder):
            return folder
        with file.open("rb") as head:
            if head.read(4) != b"GGUF":
                raise ModelCorrupt(f"{file} is not a GGUF file: give a GGUF file or a folder of safetensors.")
        from specclient_engine.models.apart import convert_apart

        for left in unfinished(folder):
            discard(left)
        made = new_unfinished(folder)
        try:
            convert_apart(file, made, progress)
            note_sizes(made)
            discard(folder)
            made.replace(folder)
        except BaseException:
            discard(made)
            raise
    return folder
