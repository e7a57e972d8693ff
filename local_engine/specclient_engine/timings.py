"""Timings of passes that outlive the process: the next start has only to see that they still hold."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from specclient_engine.errors import CacheUnusable
from specclient_engine.models.cache import cache_root, write_whole
from specclient_engine.runner.base import ModelRunner

Sample = tuple[int, int, float]
"""Rows, cached context and seconds of a pass."""


class KeptTimings:
    """A small file of timings, for one model as one runner computes it on one machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[Sample]:
        """What was kept; nothing where that is missing or broken."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            samples = [(int(rows), int(context), float(seconds)) for rows, context, seconds in found]
        except (OSError, ValueError, TypeError, OverflowError):
            return []
        whole = all(
            rows > 0 and context >= 0 and 0 < seconds < math.inf for rows, context, seconds in samples
        )
        return samples if whole else []

    def write(self, samples: Iterable[Sample]) -> None:
        """Keeps `samples` in place of what was kept; does nothing where the cache cannot be written to."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(list(samples)).encode())


def kept_timings(runner: ModelRunner) -> KeptTimings | None:
    """Where the timings of `runner` are kept; None for one that does not say what they depend on, and where
    the cache has no place."""
    identity = getattr(runner, "cost_identity", None)
    if identity is None:
        return None
    digest = hashlib.sha256(str(identity).encode()).hexdigest()
    try:
        return KeptTimings(cache_root() / "timings" / f"{digest[:20]}.json")
    except CacheUnusable:
        return None
