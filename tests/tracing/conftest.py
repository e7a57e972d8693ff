"""A backend that keeps spans and metrics in memory, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tracing_helpers import Backend, Clock

from specclient.tracing.habit import HABITS


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend() -> Iterator[Backend]:
    backend = Backend()
    yield backend
    backend.tracer_provider.shutdown()
    backend.meter_provider.shutdown()


@pytest.fixture(autouse=True)
def no_habits() -> None:
    HABITS.clear()
