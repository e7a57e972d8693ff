"""An engine over a tiny random model, whose passes are recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from engine_kit import Bench, RecordingRunner, tiny_model

from specclient_engine.runner.plain import PlainRunner


@pytest.fixture(scope="session", autouse=True)
def few_threads() -> None:
    """Tiny models are slower on many threads."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def kernels_are_kept(compiled_once: None) -> None:
    """Each set of instructions costs a compilation: one for all tests."""


@pytest.fixture(scope="session")
def tiny_runner() -> PlainRunner:
    return PlainRunner(tiny_model())


@pytest.fixture
def recording(tiny_runner: PlainRunner) -> RecordingRunner:
    return RecordingRunner(tiny_runner)


@pytest.fixture
def bench(recording: RecordingRunner) -> Iterator[Bench]:
    bench = Bench(recording)
    yield bench
    bench.engine.close()
    assert not recording.live, "a request left its cache behind"
