"""The benchmarks run in a checkout that has nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import common


def test_this_repositorys_own_edits_are_real_edits() -> None:
    edits = common.load_edits(common.OWN_EDITS)
    assert len(edits) == 8
    for edit in edits:
        assert edit.instruction
        assert edit.before != edit.after
        before, after = edit.before.splitlines(), edit.after.splitlines()
        assert len(set(before) & set(after)) > len(set(before)) / 2, edit.name


def test_they_stand_in_for_a_published_set_and_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(common, "DATA", tmp_path / "shared")
    assert common.load_edits(tmp_path / "shared" / "canitedit.jsonl")[0].name == "ring_buffer.py"
    assert "canitedit is not beside this checkout" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"mine\.jsonl is not there"):
        common.load_edits(tmp_path / "mine.jsonl")
