"""How much memory a model takes for its weights and its cache, read from its files without loading it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specclient.errors import ConfigError

WEIGHT_BYTES: Mapping[str, float] = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.0}
"""Bytes of a weight. An int8 row also has a scale, which is less than a thousandth."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What of a model decides its memory: parameters, and the key/value cache's three sizes."""

    name: str
    parameters: int
    layers: int
    kv_heads: int
    head_dim: int
    max_context: int | None = None

    def weight_bytes(self, dtype: str) -> int:
        """Bytes of the weights in `dtype`."""
        return math.ceil(self.parameters * WEIGHT_BYTES[dtype])

    def cache_bytes(self, tokens: int, element_bytes: float = 2.0) -> int:
        """Bytes of the keys and values of `tokens` positions."""
        return math.ceil(2 * self.layers * self.kv_heads * self.head_dim * element_bytes * tokens)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes for a target, perhaps a draft model, and the cache of both."""

    target: int
    draft: int
    cache: int
    per_token: int
    """Bytes of cache that one more position of one request takes."""

    @property
    def total(self) -> int:
        return self.target + self.draft + self.cache

    def most_context(self, memory: int, concurrency: int) -> int:
        """The longest context that fits for each of `concurrency` requests; 0 where nothing does."""
        return max(0, memory - self.target - self.draft) // (self.per_token * concurrency)

    def most_requests(self, memory: int, context: int) -> int:
        """How many requests of `context` tokens fit at once."""
        return max(0, memory - self.target - self.draft) // (self.per_token * context)


def memory_needed(
    target: ModelShape, draft: ModelShape | None, *, context: int, concurrency: int, dtype: str
) -> Memory:
    """Weights in `dtype` and a cache of two bytes an element, for `concurrency` requests of `context`."""
    shapes = [target] if draft is None else [target, draft]
    per_token = sum(shape.cache_bytes(1) for shape in shapes)
    return Memory(
        target=target.weight_bytes(dtype),
        draft=draft.weight_bytes(dtype) if draft is not None else 0,
        cache=per_token * context * concurrency,
        per_token=per_token,
    )


def shape_of(model: str) -> ModelShape:
    """The shape of a model folder, a GGUF file or a known model.

    Or of its numbers, given as `parameters=…,layers=…,kv_heads=…,head_dim=…`. Nothing is fetched: a known
    model has to be in the cache. Raises ConfigError.
    """
    if "=" in model:
        return _from_numbers(model)
    from specclient_engine.models import KNOWN_MODELS, cached, known_model

    row = known_model(model)
    if row is None:
        path = Path(model).expanduser()
        if path.is_dir():
            return _from_folder(path, path.name)
        if path.is_file():
            return _from_gguf(path)
        names = ", ".join(known.name for known in KNOWN_MODELS)
        raise ConfigError(
            f"There is no model at {model!r}: give a folder, a GGUF file, one of {names}, or its numbers as "
            f"parameters=7.6e9,layers=28,kv_heads=4,head_dim=128."
        )
    folder = cached(row)
    if folder is None:
        raise ConfigError(f"{row.name} is not in the cache: call specclient models fetch {row.name} first.")
    return _from_folder(folder, row.name)


def _from_numbers(text: str) -> ModelShape:
    wanted = {"parameters", "layers", "kv_heads", "head_dim"}
    try:
        pairs = dict(part.split("=", 1) for part in text.split(","))
        numbers = {name.strip(): int(float(value)) for name, value in pairs.items()}
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is not a list of name=number.") from None
    if missing := wanted - numbers.keys():
        raise ConfigError(f"{text!r} lacks {', '.join(sorted(missing))}.")
    if unknown := numbers.keys() - wanted - {"max_context"}:
        raise ConfigError(f"{text!r}: {', '.join(sorted(unknown))} means nothing here.")
    if min(numbers.values()) < 1:
        raise ConfigError(f"{text!r}: every number is at least 1.")
    return ModelShape("the numbers given", **numbers)


def _from_folder(folder: Path, name: str) -> ModelShape:
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        config = config.get("text_config", config)
        heads = int(config["num_attention_heads"])
        return ModelShape(
            name=name,
            parameters=sum(_safetensors_sizes(folder)),
            layers=int(config["num_hidden_layers"]),
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
            max_context=config.get("max_position_embeddings"),
        )
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise ConfigError(
            f"{folder} cannot be read as a model folder ({type(error).__name__}: {error})."
        ) from None


def _safetensors_sizes(folder: Path) -> Iterator[int]:
    """Elements of every tensor, from the headers alone."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError("no *.safetensors")
    for file in files:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header: dict[str, Any] = json.loads(stream.read(length))
        yield from (math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")


def _from_gguf(file: Path) -> ModelShape:
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ConfigError(
            "Reading a GGUF file needs the engine's libraries: pip install 'specclient[local]'."
        ) from None
    try:
        reader = GGUFReader(file)
        family = reader.fields["general.architecture"].contents()

        def number(key: str, default: int | None = None) -> int:
            field = reader.fields.get(f"{family}.{key}")
            if field is not None:
                return int(field.contents())
            if default is None:
                raise KeyError(key)
            return default

        heads = number("attention.head_count")
        return ModelShape(
            name=file.name,
            parameters=sum(int(tensor.n_elements) for tensor in reader.tensors),
            layers=number("block_count"),
            kv_heads=number("attention.head_count_kv", heads),
            head_dim=number("attention.key_length", number("embedding_length") // heads),
            max_context=number("context_length"),
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(f"{file} cannot be read as a GGUF file ({type(error).__name__}).") from None
