"""What the command line sets in its own environment, and keeps from the programs that it starts."""

from __future__ import annotations

import os

WAITING = "OMP_WAIT_POLICY"
RIVAL = "GOMP_SPINCOUNT"
_added: set[str] = set()


def wait_asleep() -> None:
    """Let threads of the engine that wait for one another sleep, unless the environment says how they wait.

    Awake they take the processor from the one they wait for: beside two busy programs on two cores a pass
    took two to three times as long, and alone it takes the same. OpenMP reads this when torch is loaded.
    """
    if WAITING not in os.environ and RIVAL not in os.environ:
        os.environ[WAITING] = "passive"
        _added.add(WAITING)


def given() -> dict[str, str]:
    """The environment as others are to have it: without what was added here."""
    return {name: value for name, value in os.environ.items() if name not in _added}
