"""Commands run in this process, with stdout, stderr and the exit code kept apart."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specclient.cli import surroundings


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: Any) -> Any:
    """`cli("edit", "a.py", …)` in an empty folder -> Outcome."""
    from specclient.cli.main import main

    monkeypatch.chdir(tmp_path)
    # Not for the processes that later tests start: what `main` sets in its own process lasts as long as that.
    monkeypatch.setattr(surroundings, "wait_asleep", lambda: None)

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["specclient", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Outcome(int(str(code)), out.decode(), err.decode())

    return run


@pytest.fixture
def process(tmp_path: Path) -> Any:
    """The same through a real process, for what only a process shows."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from specclient.cli.main import main; main()"]
        return subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
            **options,
        )

    return run
