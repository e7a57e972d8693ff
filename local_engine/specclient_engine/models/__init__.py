"""Find a model, whatever it is named by, as a folder of safetensors.

`locate` takes a known name, a folder, a GGUF file or a hub id. What has to be fetched or converted is,
once, into the cache; the folder gets its final name only when it is whole, so an interrupted conversion
starts over and never leaves half a model.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from specclient_engine.api import ProgressCallback
from specclient_engine.errors import ModelCorrupt, ModelNotFound
from specclient_engine.models.cache import cache_root, locked, sha256_of
from specclient_engine.models.known import DEFAULT_MODEL, KNOWN_MODELS, KnownModel, known_model
from specclient_engine.models.sources import fetch

__all__ = [
    "DEFAULT_MODEL",
    "KNOWN_MODELS",
    "KnownModel",
    "ModelFiles",
    "cache_root",
    "cached",
    "known_model",
    "locate",
]

# Part of the converted folder's name: raise it when the conversion's result changes.
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model ready to load: `path` holds config.json, tokenizer.json and *.safetensors."""

    name: str
    path: Path


def locate(model: str | Path, progress: ProgressCallback | None = None) -> ModelFiles:
    """The folder of `model`, fetched and converted if need be.

    Raises ModelNotFound, ModelCorrupt or NotEnoughDisk, each saying what to do.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return ModelFiles(path.stem, _converted(path, _identity(path), progress))
    row = known_model(str(model))
    if row is not None:
        folder = _converted_folder(row.file, row.sha256)
        if not folder.exists():
            with locked(cache_root() / "downloads" / row.file):
                file = fetch(row, cache_root() / "downloads", progress)
            _converted(file, row.sha256, progress)
        return ModelFiles(row.name, folder)
    if str(model).count("/") == 1 and not str(model).startswith((".", "/", "~")):
        return _from_hub(str(model))
    names = ", ".join(m.name for m in KNOWN_MODELS)
    raise ModelNotFound(
        f"there is no model at {str(model)!r}: give a folder, a GGUF file, a hub id (owner/name), "
        f"or one of {names}."
    )


def cached(row: KnownModel) -> Path | None:
    """The converted folder of a known model, or None when it is not there yet."""
    folder = _converted_folder(row.file, row.sha256)
    return folder if folder.exists() else None


def _folder(path: Path) -> ModelFiles:
    for needed in ("config.json", "tokenizer.json"):
        if not (path / needed).is_file():
            raise ModelNotFound(
                f"{path} has no {needed}: a model folder holds config.json, tokenizer.json and *.safetensors."
            )
    if not any(path.glob("*.safetensors")):
        raise ModelNotFound(f"{path} has no *.safetensors: save the model with save_pretrained first.")
    return ModelFiles(path.name, path)


def _converted_folder(file: str, identity: str) -> Path:
    """Named for people to read, and unique by content and by the conversion's own version."""
    return cache_root() / "models" / f"{Path(file).stem.lower()}-{identity[:12]}-v{_FORMAT}"


def _identity(file: Path) -> str:
    """The content's hash, remembered by path, size and time: hashing gigabytes at every start is slow."""
    stat = file.stat()
    key = hashlib.sha256(f"{file.resolve()}|{stat.st_size}|{stat.st_mtime_ns}".encode()).hexdigest()
    note = cache_root() / "hashes" / key[:32]
    if note.exists():
        return note.read_text()
    digest = sha256_of(file)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(digest)
    return digest


def _converted(file: Path, identity: str, progress: ProgressCallback | None) -> Path:
    folder = _converted_folder(file.name, identity)
    if folder.exists():
        return folder
    with locked(folder):
        if folder.exists():
            return folder
        with file.open("rb") as head:
            if head.read(4) != b"GGUF":
                raise ModelCorrupt(f"{file} is not a GGUF file: give a GGUF file or a folder of safetensors.")
        from specclient_engine.models.apart import convert_apart

        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            convert_apart(file, unfinished, progress)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        unfinished.replace(folder)
    return folder


def _from_hub(repo: str) -> ModelFiles:
    try:
        import huggingface_hub as hub

        folder = hub.snapshot_download(
            repo, allow_patterns=["*.json", "*.safetensors", "*.jinja", "tokenizer.model"], etag_timeout=5
        )
    except Exception as error:
        # The hub's client raises its HTTP library's own classes, which changed between its releases.
        raise ModelNotFound(
            f"{repo} could not be had from the hub ({type(error).__name__}): "
            "give a folder or a GGUF file instead."
        ) from error
    return ModelFiles(repo, _folder(Path(folder)).path)
