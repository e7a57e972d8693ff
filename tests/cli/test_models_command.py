"""`specclient models` shows and removes all that lies in the cache."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specclient_engine.models import KNOWN_MODELS, cache_root
from specclient_engine.models.cache import locked
from specclient_engine.models.folders import download_of, folder_of

ROW = KNOWN_MODELS[0]


def test_what_interrupted_work_left_is_listed_and_removed(cli: Any) -> None:
    slices = download_of(ROW).with_name(ROW.file + ".part.slices")
    unfinished = folder_of(ROW).with_name(folder_of(ROW).name + ".unfinished-12ab")
    for folder in (slices, unfinished):
        folder.mkdir(parents=True)
        (folder / "000").write_bytes(b"x" * 1_000_000)
    rows = json.loads(cli("models", "list", "--json").out)
    assert [row["leftover_bytes"] for row in rows] == [2_000_000, 0, 0]
    listed = cli("models", "list").err
    assert f"{ROW.name}: 2 MB are unfinished" in listed
    assert f"specclient models remove {ROW.name}" in listed
    assert json.loads(cli("models", "remove", ROW.name, "--json").out)["freed_bytes"] == 2_000_000
    assert not slices.exists()
    assert not unfinished.exists()
    assert cli("models", "list").err == ""


def test_an_interrupted_conversion_of_ones_own_file_is_removed_by_its_name(cli: Any) -> None:
    name = "mine-0123456789ab-v2.unfinished-12ab"
    left = cache_root() / "models" / name
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"x" * 3_000_000)
    assert f"{name}: 3 MB are an interrupted conversion's" in cli("models", "list").err
    with locked(cache_root() / "models" / "mine-0123456789ab-v2"):
        busy = cli("models", "remove", name)
    assert (busy.code, "another process" in busy.err, left.exists()) == (1, True, True)
    assert json.loads(cli("models", "remove", name, "--json").out)["freed_bytes"] == 3_000_000
    assert not left.exists()


def test_a_cache_without_a_place_is_told_in_one_sentence(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCLIENT_CACHE", "~nosuchuser/x")
    outcome = cli("models", "list")
    assert outcome.err.startswith("error: the cache of models has no place")
    assert "SPECCLIENT_CACHE" in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.code == 2
