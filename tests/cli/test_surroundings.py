"""What the command line sets for its own engine is set only where nobody chose otherwise."""

from __future__ import annotations

import os

import pytest

from specclient.cli import surroundings


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "_added", set())
    for name in (surroundings.WAITING, surroundings.RIVAL):
        monkeypatch.setenv(name, "")  # so that whatever a test sets is taken back
        monkeypatch.delenv(name)


def test_threads_wait_asleep_and_started_programs_do_not_hear_of_it() -> None:
    before = dict(os.environ)
    surroundings.wait_asleep()
    assert os.environ[surroundings.WAITING] == "passive"
    assert surroundings.given() == before


@pytest.mark.parametrize(("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "1000")])
def test_what_somebody_chose_stays(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    surroundings.wait_asleep()
    assert dict(os.environ) == before == surroundings.given()
