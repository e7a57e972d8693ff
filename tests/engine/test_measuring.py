"""The cost of passes, measured by a clock that the test turns: on machines quiet, busy and slow."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest
import torch

from specclient_engine.api import Draft
from specclient_engine.cost import CostCurve
from specclient_engine.cost_fit import fit_curve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.measuring import measure_cost
from specclient_engine.request_state import MAX_DRAFT
from specclient_engine.runner.base import Chunk
from specclient_engine.timings import KeptTimings

Noise = Callable[["Machine"], float]
SMALL = CostCurve([1, 8, 32, 129], [0.0076, 0.0097, 0.024, 0.092], 1e-7, 1.2e-7)
MIDDLE = CostCurve([1, 8, 16, 32, 129], [0.042, 0.046, 0.055, 0.085, 0.3], 4e-7, 2.2e-7)
LARGE = CostCurve([1, 4, 8, 16, 32, 129], [0.1, 0.103, 0.11, 0.15, 0.26, 0.95], 4e-7, 4.3e-7)
HUGE = CostCurve([1, 8, 32, 129], [0.6, 0.66, 1.8, 7.0], 1e-6, 1e-7)


class Machine:
    """A runner whose passes take what a curve says, times what a noise says, on a clock of its own."""

    device = torch.device("cpu")
    max_context = 32768

    def __init__(self, true: CostCurve, noise: Noise, seed: int = 0) -> None:
        self.true, self.noise, self.dice = true, noise, random.Random(seed)
        self.now, self.busy, self.until = 0.0, False, 0.0
        self.passes: list[tuple[int, int]] = []

    def clock(self) -> float:
        return self.now

    def allocate(self, tokens: int) -> int:
        return 0

    def release(self, slot: int) -> None: ...

    def forward(self, chunks: list[Chunk]) -> torch.Tensor:
        (chunk,) = chunks
        self.passes.append((len(chunk.tokens), chunk.start))
        self.run(len(chunk.tokens), chunk.start)
        return torch.zeros(1, 1)

    def run(self, rows: int, context: int) -> float:
        seconds = self.true.seconds(rows, context) * self.noise(self)
        self.now += seconds
        return seconds


def quiet(machine: Machine) -> float:
    return 1.0 + 0.03 * machine.dice.random()


def spells(machine: Machine) -> float:
    """Others work on the same cores for about a second at a time."""
    while machine.now >= machine.until:
        machine.busy = not machine.busy
        machine.until += machine.dice.expovariate(1.0)
    return (2.2 if machine.busy else 1.0) * (1.0 + 0.1 * machine.dice.random())


def stalls(machine: Machine) -> float:
    """Every other pass is held up, some for four times as long as they take."""
    return 1.0 + 4.0 * machine.dice.random() * (machine.dice.random() < 0.5)


def served(machine: Machine, cost: CostCurve, chance: float, passes: int, context: int = 3000) -> float:
    """What drafts that are right with `chance` a token gain, as a share of what the true costs allow."""
    policy = DraftLengthPolicy(cost, max_rows=256)
    draft = Draft((7,) * MAX_DRAFT, ("prediction",) * MAX_DRAFT, (chance,) * MAX_DRAFT)
    expected = [sum(chance**i for i in range(length + 1)) for length in range(MAX_DRAFT + 1)]
    true = [machine.true.seconds(length + 1, context) for length in range(MAX_DRAFT + 1)]
    tokens = seconds = 0.0
    for _ in range(passes):
        (length,) = policy.choose([(draft, context)])
        tokens, seconds = tokens + expected[length], seconds + true[length]
        cost.observe(length + 1, context, machine.run(length + 1, context))
    return tokens / seconds / max(e / t for e, t in zip(expected, true, strict=True))


@pytest.mark.parametrize("true", [SMALL, MIDDLE, LARGE], ids=["small", "middle", "large"])
def test_a_quiet_machine_is_measured_right_in_well_under_a_second(true: CostCurve) -> None:
    machine = Machine(true, quiet)
    cost = measure_cost(machine, clock=machine.clock)  # type: ignore[arg-type]
    assert machine.now < 0.65
    for rows in (1, 8, 32):
        assert cost.seconds(rows, 0) == pytest.approx(true.seconds(rows, 0), rel=0.05)
    assert cost.seconds(129, 0) == pytest.approx(true.seconds(129, 0), rel=0.2)
    assert served(machine, cost, 0.9, 12) > 0.98


@pytest.mark.parametrize("noise", [spells, stalls])
@pytest.mark.parametrize("true", [SMALL, MIDDLE, LARGE], ids=["small", "middle", "large"])
def test_a_busy_machine_does_not_make_drafts_short(true: CostCurve, noise: Noise) -> None:
    """Loads on many busy machines: drafts are nearly as good as with the true costs, soon after each."""
    shares = []
    for seed in range(40):
        machine = Machine(true, noise, seed)
        cost = measure_cost(machine, clock=machine.clock)  # type: ignore[arg-type]
        shares.append(served(machine, cost, (0.8, 0.95)[seed % 2], 30))
    assert mean(shares) > 0.88
    assert min(shares) > 0.5


def test_a_cheap_pass_bounds_what_is_only_believed() -> None:
    curve = CostCurve([1, 2, 8, 16], [1.0, 3.0, 9.0, 20.0])
    curve.observe(2, 0, 1.0)
    assert [curve.seconds(rows, 0) for rows in (1, 2, 8, 16)] == pytest.approx([1.0, 1.0, 4.0, 8.0])
    curve.observe(16, 0, 7.0)
    # Two rows were paid: they are known, and stay.
    assert curve.seconds(8, 0) == pytest.approx(4.0)
    assert curve.seconds(2, 0) == pytest.approx(1.0)


def test_a_curve_from_a_quiet_moment_is_not_lost_in_a_busy_one() -> None:
    shares = []
    for seed in range(20):
        machine = Machine(LARGE, quiet, seed)
        cost = measure_cost(machine, clock=machine.clock)  # type: ignore[arg-type]
        machine.noise = stalls
        shares.append(served(machine, cost, 0.9, 40))
    assert mean(shares) > 0.92


def test_a_slow_model_is_measured_little_and_believed_for_the_rest() -> None:
    machine = Machine(HUGE, quiet)
    cost = measure_cost(machine, clock=machine.clock)  # type: ignore[arg-type]
    assert machine.passes == [(1, 0), (8, 0)]
    assert machine.now < 1.4
    # What was not timed costs at most as much as several passes that were.
    assert cost.seconds(32, 0) == pytest.approx(4 * cost.seconds(8, 0))
    assert served(machine, cost, 0.95, 60) > 0.92


def test_a_device_gets_its_graphs_before_the_clock_starts() -> None:
    """The first pass of a shape captures its graph, which takes a hundred times as long."""

    class Capturing(Machine):
        device = torch.device("meta")  # any that is no processor

        def run(self, rows: int, context: int) -> float:
            new = self.passes.count((rows, context)) == 1
            seconds = self.true.seconds(rows, context) * (100 if new else 1)
            self.now += seconds
            return seconds

    machine = Capturing(SMALL, quiet)
    cost = measure_cost(machine, clock=machine.clock)  # type: ignore[arg-type]
    for rows in (1, 2, 4, 8, 16, 32, 129):
        assert cost.seconds(rows, 0) == pytest.approx(SMALL.seconds(rows, 0), rel=0.05)


def test_a_timing_bounds_its_neighbours() -> None:
    """Noise only adds: more rows never cost less, nor more than as many passes of fewer rows."""
    curve = fit_curve([(1, 0, 3.0), (2, 0, 1.0), (4, 0, 9.0), (8, 0, 2.0), (32, 0, 100.0)])
    assert [curve.seconds(rows, 0) for rows in (1, 2, 8, 32)] == pytest.approx([1.0, 1.0, 2.0, 8.0])
    assert curve.seconds(4, 0) <= 1.5


def test_a_noisy_difference_does_not_make_long_contexts_dear() -> None:
    samples = [(1, 0, 0.04), (32, 0, 0.08), (1, 1024, 0.12), (32, 1024, 0.24)]
    curve = fit_curve(samples, dearest_context=1024)
    assert curve.seconds(1, 1024) <= 0.04 + 0.02 + 0.04 / 31 + 1e-9
    assert curve.seconds(32, 4096) <= 0.08 + 4 * (0.02 + 32 * 0.04 / 31) + 1e-9


def test_what_an_earlier_start_kept_is_confirmed_by_a_few_passes(tmp_path: Path) -> None:
    for true in (SMALL, MIDDLE):
        kept = KeptTimings(tmp_path / "timings.json")
        for _ in range(3):
            machine = Machine(true, quiet)
            cost = measure_cost(machine, kept=kept, clock=machine.clock)  # type: ignore[arg-type]
        assert machine.now < 0.3
        for rows in (1, 8, 32):
            assert cost.seconds(rows, 0) == pytest.approx(true.seconds(rows, 0), rel=0.05)
        assert served(machine, cost, 0.9, 12) > 0.98
        (tmp_path / "timings.json").unlink()


def test_a_machine_that_changed_is_measured_anew(tmp_path: Path) -> None:
    kept = KeptTimings(tmp_path / "timings.json")
    before = Machine(SMALL, quiet)
    measure_cost(before, kept=kept, clock=before.clock)  # type: ignore[arg-type]
    slow_rows = CostCurve([1, 8, 32, 129], [0.0076, 0.04, 0.15, 0.6], 1e-7, 1.2e-7)
    machine = Machine(slow_rows, quiet)
    cost = measure_cost(machine, kept=kept, clock=machine.clock)  # type: ignore[arg-type]
    assert cost.seconds(32, 0) == pytest.approx(0.15, rel=0.05)
    again = Machine(slow_rows, quiet)
    cost = measure_cost(again, kept=kept, clock=again.clock)  # type: ignore[arg-type]
    assert again.now < machine.now
    assert cost.seconds(16, 0) == pytest.approx(slow_rows.seconds(16, 0), rel=0.1)


def test_a_machine_that_is_slower_all_over_keeps_its_curve_at_the_pace_of_now(tmp_path: Path) -> None:
    kept = KeptTimings(tmp_path / "timings.json")
    for slower in (1.0, 3.0, 0.5):
        machine = Machine(SMALL, lambda machine, slower=slower: slower * quiet(machine))
        cost = measure_cost(machine, kept=kept, clock=machine.clock)  # type: ignore[arg-type]
        assert cost.seconds(16, 0) == pytest.approx(slower * SMALL.seconds(16, 0), rel=0.1)
    assert machine.now < 0.2


@pytest.mark.parametrize("noise", [spells, stalls])
def test_what_a_busy_machine_kept_makes_no_drafts_short(noise: Noise, tmp_path: Path) -> None:
    shares = []
    for seed in range(20):
        kept = KeptTimings(tmp_path / f"{seed}.json")
        for start in range(4):
            machine = Machine(MIDDLE, noise, seed + 100 * start)
            cost = measure_cost(machine, kept=kept, clock=machine.clock)  # type: ignore[arg-type]
        shares.append(served(machine, cost, 0.9, 30))
    assert mean(shares) > 0.88
    assert min(shares) > 0.5


@pytest.mark.parametrize(
    "content",
    ["", "[", "7", '[["a", 0, 1.0]]', "[[1, 0, 0.0]]", "[[1, 0]]", "[[1, 0, NaN]]", "[[Infinity, 0, 1]]"],
)
def test_kept_timings_that_are_broken_are_measured_anew(content: str, tmp_path: Path) -> None:
    kept = KeptTimings(tmp_path / "timings.json")
    (tmp_path / "timings.json").write_text(content)
    assert kept.read() == []
    machine = Machine(SMALL, quiet)
    measure_cost(machine, kept=kept, clock=machine.clock)  # type: ignore[arg-type]
    assert len(kept.read()) > 8


def test_a_cache_that_cannot_be_written_to_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptTimings(tmp_path / "file" / "timings.json")
    kept.write([(1, 0, 1.0)])
    assert kept.read() == []
