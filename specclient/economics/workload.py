"""Which workload a call belongs to, where that is not the same for all calls of a target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 100
"""Characters: a workload is a name for many calls, and every one has evidence of its own."""

_workload: ContextVar[str | None] = ContextVar("specclient_workload", default=None)

current_workload = _workload.get
"""What the innermost `workload` block says."""


@contextmanager
def workload(name: str | None) -> Iterator[None]:
    """Count the calls inside the block as this workload's: baselines, the gate's opinion and the spans are
    kept apart for each target, model and workload.

        with specclient.workload("translations"):
            sdk.chat.completions.create(…)

    It goes through every door, wrapped SDKs included; a call's own `workload` wins, and the target's tag
    is used where there is neither. `workload(None)` hides an outer block. Tasks that are started inside
    see it, threads do not. Raises ValueError for a name that is none.
    """
    token = _workload.set(checked(name))
    try:
        yield
    finally:
        _workload.reset(token)


def checked(name: str | None) -> str | None:
    """The name itself. Raises ValueError, which does not repeat it."""
    if name is None or (isinstance(name, str) and 0 < len(name) <= LONGEST):
        return name
    raise ValueError(f"workload is a name of 1 to {LONGEST} characters for calls of one kind.")
