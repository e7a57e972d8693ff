"""Memory from a model's files, without loading it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from specclient.economics.sizing import memory_needed, shape_of
from specclient.errors import ConfigError

CONFIG = {
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "max_position_embeddings": 512,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    header = json.dumps({"__metadata__": {}, "a": {"shape": [10, 20]}, "b": {"shape": [5]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    return tmp_path


def test_a_folder_is_read_from_headers(folder: Path) -> None:
    shape = shape_of(str(folder))
    assert (shape.parameters, shape.layers, shape.kv_heads, shape.head_dim) == (205, 3, 2, 8)
    assert shape.max_context == 512
    assert shape.weight_bytes("bfloat16") == 410
    assert shape.cache_bytes(10) == 2 * 3 * 2 * 8 * 2 * 10


def test_what_is_needed_and_what_fits_agree(folder: Path) -> None:
    target = shape_of(str(folder))
    draft = shape_of("parameters=100,layers=1,kv_heads=1,head_dim=8")
    needed = memory_needed(target, draft, context=100, concurrency=4, dtype="int8")
    assert needed.total == 205 + 100 + needed.per_token * 400
    assert needed.most_requests(needed.total, 100) == 4
    assert needed.most_context(needed.total, 4) == 100
    assert needed.most_requests(needed.total - 1, 100) == 3
    assert needed.most_context(10, 1) == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nowhere", "no model at"),
        ("smollm2", "not in the cache"),
        ("parameters=1,layers=2", "lacks head_dim, kv_heads"),
        ("parameters=x", "not a list"),
        ("parameters=1,layers=1,kv_heads=1,head_dim=0", "at least 1"),
        ("parameters=1,layers=1,kv_heads=1,head_dim=1,what=2", "means nothing"),
    ],
)
def test_what_is_no_model_is_refused(model: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        shape_of(model)


def test_a_broken_folder_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x01")
    with pytest.raises(ConfigError, match="cannot be read"):
        shape_of(str(folder))


def test_a_known_name_means_the_known_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "smollm2").write_text("not a model")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="smollm2-135m is not in the cache"):
        shape_of("smollm2")
