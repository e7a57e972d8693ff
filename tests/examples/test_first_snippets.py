"""The first code that a newcomer reads and runs does what its comments say, with the default model."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specclient.core import engines
from specclient.core.local import DEFAULT_MODEL

ROOT = Path(__file__).parents[2]
REAL_CACHE = os.environ.get("SPECCLIENT_CACHE")


@pytest.fixture(autouse=True)
def default_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A checkout's demo, and the default model if it is cached: 491 MB are not fetched for a test."""
    from specclient_engine.models import cached, known_model

    if REAL_CACHE is None:
        monkeypatch.delenv("SPECCLIENT_CACHE")
    else:
        monkeypatch.setenv("SPECCLIENT_CACHE", REAL_CACHE)
    row = known_model(DEFAULT_MODEL)
    if row is None or cached(row) is None:
        pytest.skip(f"{DEFAULT_MODEL} was not fetched yet")
    shutil.copytree(ROOT / "examples" / "demo", tmp_path / "examples" / "demo")
    monkeypatch.chdir(tmp_path)
    yield
    engines.close_all()


def run(page: str, count: int) -> dict[str, Any]:
    """The names that the page's first snippets leave behind."""
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for snippet in snippets[:count]:
        exec(compile(snippet, page, "exec"), names)
    names["client"].close()
    return names


def check(answer: Any) -> None:
    assert answer.choices[0].message.content.strip() == (
        "[server]\nhost = 127.0.0.1\nport = 9000\nworkers = 4"
    )
    assert answer.specclient.prediction.outcome == "local"
    assert answer.specclient.prediction.accepted_tokens > 10


@pytest.mark.model
def test_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("README.md", 2)
    check(names["answer"])
    assert names["answer"].specclient.timing.prefill.source == "engine"
    assert "+class Warehouse:" in capsys.readouterr().out
    assert names["edit"].report.prediction.accepted_tokens > 400
    assert not names["edit"].warnings


@pytest.mark.model
def test_the_page_of_the_client(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("docs/client.md", 1)
    check(names["answer"])
    assert names["report"].prediction.outcome == "local"
    assert "content.done" in capsys.readouterr().out
